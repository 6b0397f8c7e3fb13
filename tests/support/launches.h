// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dlfcn.h>

#include <cstdint>

#include "kernels/runtime/runtime.h"

namespace weft::tests {

/// The emulated GPU's count of the kernels that it has run in this process; none of a real GPU.
inline auto* emulator_launches() {
  static auto* const count = reinterpret_cast<int64_t (*)()>(dlsym(RTLD_DEFAULT, "weft_emulator_launches"));
  return count;
}

inline bool counts_launches() { return emulator_launches() != nullptr; }

/// How many kernels the emulated GPU runs for `body`.
template <class Body>
int64_t launches_of(Body&& body) {
  const auto count = [] {
    kernels::runtime(DeviceKind::cuda).synchronize_device(0);
    return emulator_launches()();
  };
  const int64_t before = count();
  body();
  return count() - before;
}

}  // namespace weft::tests
