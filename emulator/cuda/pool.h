// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace emulator::cuda {

/// A cudaMemPool_t points at it. It keeps no memory: freed memory goes back to the device at once.
struct Pool {
  int device = 0;
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};  ///< follow event dependencies, opportunistic, internal dependencies
  uint64_t used = 0, used_high = 0;
  uint64_t reserved = 0, reserved_high = 0;  ///< with what was freed and is kept, up to release_threshold
  bool is_default = true;
};

}  // namespace emulator::cuda
