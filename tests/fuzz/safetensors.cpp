// SPDX-License-Identifier: Apache-2.0
// Input: a .safetensors file. A readable file must be written and read again to the same tensors.
#include "io/safetensors.h"

#include <cstring>

#include "tests/fuzz/fuzz.h"

using namespace weft;

namespace {

void expect_same(const SafetensorsFile& a, const SafetensorsFile& b) {
  if (a.state.tensors.size() != b.state.tensors.size() || a.metadata != b.metadata) std::abort();
  for (const NamedTensor& entry : a.state.tensors) {
    const Tensor other = b.state.tensor(entry.name);
    if (other.sizes() != entry.tensor.sizes() || other.dtype() != entry.tensor.dtype()) std::abort();
    if (entry.tensor.nbytes() > 0 && std::memcmp(other.raw_data(), entry.tensor.raw_data(), entry.tensor.nbytes()) != 0)
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto file = folder.write("input.safetensors", {data, data + size});
  fuzz::expect_value_or_error([&] {
    const SafetensorsFile read = read_safetensors(file);
    const auto copy = folder.path() / "copy.safetensors";
    write_safetensors(copy, read.state, read.metadata);
    expect_same(read, read_safetensors(copy));
  });
  return 0;
}
