// SPDX-License-Identifier: Apache-2.0
// Pairs of IDX files. Input: whether they are gzip, length of the labels' file, that file, the images' file.
#include "data/idx.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const uint8_t packed = input.byte();
  const std::string images = "t10k-images-idx3-ubyte", labels = "t10k-labels-idx1-ubyte";
  for (const std::string& name : {images, labels}) folder.remove(name), folder.remove(name + ".gz");
  folder.write(labels + (packed & 1 ? ".gz" : ""), input.take(input.word()));
  folder.write(images + (packed & 2 ? ".gz" : ""), input.rest());
  fuzz::expect_value_or_error([&] {
    const auto set = data::idx(folder.path(), data::Split::val);
    for (int64_t i = 0; i < set->size(); ++i) static_cast<void>(set->classes().at(set->get(i).label));
  });
  return 0;
}
