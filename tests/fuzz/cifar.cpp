// SPDX-License-Identifier: Apache-2.0
// The CIFAR files, binary and pickled. Input: variant, length of the file of class names, that file, the records.
#include "data/cifar.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const int kind = input.byte() % 6, variant = kind % 3;
  const bool pickled = kind >= 3;
  const char* const texts[] = {"batches.meta.txt", "fine_label_names.txt", "coarse_label_names.txt"};
  const char* const pickles[] = {"batches.meta", "meta", "meta"};
  const auto& names = pickled ? pickles : texts;
  const size_t names_bytes = input.word();
  folder.remove(names[variant]);
  if (names_bytes > 0) folder.write(names[variant], input.take(names_bytes));
  const std::string records = variant == 0 ? "test_batch" : "test";
  folder.remove(records + ".bin");
  folder.write(records + (pickled ? "" : ".bin"), input.rest());
  fuzz::expect_value_or_error([&] {
    const auto set = variant == 0 ? data::cifar10(folder.path(), data::Split::val)
                                  : data::cifar100(folder.path(), data::Split::val,
                                                   variant == 1 ? data::CifarLabels::fine : data::CifarLabels::coarse);
    for (int64_t i = 0; i < set->size(); ++i) static_cast<void>(set->classes().at(set->get(i).label));
  });
  return 0;
}
