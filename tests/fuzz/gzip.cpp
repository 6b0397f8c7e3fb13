// SPDX-License-Identifier: Apache-2.0
// Input: a .gz file.
#include "io/file_reader.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::expect_value_or_error([&] { gunzip({data, data + size}, "input.gz"); });
  return 0;
}
