// SPDX-License-Identifier: Apache-2.0
// Input: a checkpoint file. The library libhdf5 must see none that was not written whole.
#include "apps/support/checkpoint.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto file = folder.write("checkpoint.h5", {data, data + size});
  fuzz::expect_value_or_error([&] { support::load_checkpoint(file); });
  return 0;
}
