// SPDX-License-Identifier: Apache-2.0
// Input: an index of sharded weights, beside two files that it may name.
#include "io/safetensors.h"
#include "io/weights/open_parts.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  static const bool ready = [] {
    for (const char* name : {"a", "b"}) {
      StateDict state;
      state.tensors = {{std::string(name) + "1", Tensor::ones({2})}, {std::string(name) + "2", Tensor::zeros({3, 1})}};
      write_safetensors(folder.path() / (std::string(name) + ".safetensors"), state);
    }
    return true;
  }();
  if (!ready) return 0;
  const auto file = folder.write("input.json", {data, data + size});
  fuzz::expect_value_or_error([&] {
    const auto weights = open_weights_index(file);
    if (weights->read_all().tensors.size() > 4) std::abort();
  });
  return 0;
}
