// SPDX-License-Identifier: Apache-2.0
// Input: which map of names, then a foreign file's tensors: rank and sizes, length of the name, the name.
#include "io/weights/name_map.h"

#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<std::string> maps = name_map_names();
  fuzz::Input input(data, size);
  const size_t map = input.byte() % (maps.size() + 1);
  StateDict state;
  while (!input.empty() && state.tensors.size() < 64) {
    Shape sizes;
    for (int rank = input.byte() % 4; rank > 0; --rank) sizes.push_back(input.byte() % 7);
    state.tensors.push_back({input.text(input.byte()), Tensor::zeros(sizes)});
  }
  fuzz::expect_value_or_error([&] {
    int64_t before = 0, after = 0;
    for (const NamedTensor& entry : state.tensors) before += entry.tensor.numel();
    for (const NamedTensor& entry : renamed_state(state, {.map = map < maps.size() ? maps[map] : "auto"}).tensors)
      after += entry.tensor.numel();
    if (after > before) std::abort();
  });
  return 0;
}
