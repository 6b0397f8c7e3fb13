// SPDX-License-Identifier: Apache-2.0
// Input: the step to resume at, a metrics.jsonl that a run left behind.
#include "train/record/metrics.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const auto step = static_cast<int64_t>(input.word());
  const auto file = folder.write("metrics.jsonl", input.rest());
  fuzz::expect_value_or_error([&] {
    train::Metrics metrics(file, step);
    metrics.append({.epoch = 1, .step = step + 1});
  });
  return 0;
}
