// SPDX-License-Identifier: Apache-2.0
// Input: a checkpoint file, unchanged, and also with a fitting seal.
#include "io/checkpoint.h"
#include "io/seal.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto file = folder.write("checkpoint", {data, data + size});
  fuzz::expect_value_or_error([&] { load_checkpoint(file); });
  if (size <= kSealBytes) return 0;
  AtomicFile sealed(file, "fuzz");
  std::filesystem::copy_file(file, sealed.temporary(), std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(sealed.temporary(), size - kSealBytes);
  seal(sealed);
  sealed.commit();
  fuzz::expect_value_or_error([&] { load_checkpoint(file); });
  return 0;
}
