// SPDX-License-Identifier: Apache-2.0
// Input: ILSVRC2012_val_labels.json, beside a folder of two classes and two images.
#include "apps/jsc/encoded_part.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  static const bool ready = [] {
    const std::filesystem::path images = "ILSVRC/Data/CLS-LOC";
    for (const char* part : {"train/n01440764", "train/n02123045", "val"}) {
      std::filesystem::create_directories(folder.path() / images / part);
      for (const char* name : {"a.JPEG", "b.JPEG"}) folder.write(images / part / name, {1});
    }
    return true;
  }();
  if (!ready) return 0;
  folder.write("ILSVRC2012_val_labels.json", {data, data + size});
  fuzz::expect_value_or_error([&] {
    const auto set = jsc::open_part("fs", folder.path().string(), "val");
    for (int64_t i = 0; i < set->size(); ++i) static_cast<void>(set->classes().at(set->label(i)));
  });
  return 0;
}
