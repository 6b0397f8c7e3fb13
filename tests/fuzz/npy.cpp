// SPDX-License-Identifier: Apache-2.0
// NumPy's file of one array. Input: the file.
#include "io/npy.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  folder.write("a.npy", input.rest());
  fuzz::expect_value_or_error([&] { static_cast<void>(read_npy(folder.path() / "a.npy").to_vector<double>()); });
  return 0;
}
