// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

#include "tests/support/random_values.h"

namespace weft::tests {

/// From the next launch on, a seed chooses the order of the emulated GPU's streams, blocks, warps and copies; 0: their
/// fixed order. False where the GPU is real and has its own.
inline bool set_seed(uint64_t seed) {
  static auto* const set = reinterpret_cast<void (*)(uint64_t)>(dlsym(RTLD_DEFAULT, "weft_emulator_set_seed"));
  if (set != nullptr) set(seed);
  return set != nullptr;
}

/// Runs `body` in the order that the run has and in random ones, which a real GPU chooses itself.
template <class Body>
void in_orders(int random_ones, Body&& body) {
  body();
  for (int i = 0; i < random_ones; ++i) {
    set_seed(generator()());
    body();
  }
  const char* const before = std::getenv("WEFT_EMULATE_SEED");
  set_seed(before == nullptr ? 0 : std::strtoull(before, nullptr, 10));
}

}  // namespace weft::tests
