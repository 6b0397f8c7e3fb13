// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::kernels::cuda {

/// A position in the ring of stages: the stage, and the parity of its mbarrier's current phase.
template <int kStages>
struct RingPosition {
  int stage = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ __forceinline__ void advance(int stages) {
    stage += stages;
    parity ^= stage / kStages & 1;
    stage %= kStages;
  }
};

}  // namespace weft::kernels::cuda
