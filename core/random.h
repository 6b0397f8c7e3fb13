// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "core/tensor.h"

namespace weft {

/// The source of random numbers of one device: seed and the count of Philox blocks drawn. A function of both, so
/// saving two numbers saves the state. Each draw of n elements advances the counter by its own number of blocks.
struct Generator {
  uint64_t seed = 0;
  uint64_t offset = 0;

  /// Takes `blocks` counters; returns the first.
  uint64_t take(uint64_t blocks) {
    const uint64_t first = offset;
    offset += blocks;
    return first;
  }
};

/// The generator of a device (shared by all threads; draw from one thread at a time).
Generator& generator(Device device);

/// Seeds every device's generator and sets its counter to 0.
void manual_seed(uint64_t seed);

/// The i64[2] device tensor {seed, base} that random kernels read; base is 0 outside captured graphs.
Tensor random_state(Device device);

}  // namespace weft
