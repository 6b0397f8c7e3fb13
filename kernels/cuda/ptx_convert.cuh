// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include "kernels/half.h"

// PTX of conversions between f32 and its halves, for kernels/cuda/convert.cuh. On the emulator kernels/half.h does it.

namespace weft::kernels::cuda::ptx {

/// To nearest even, to bf16 or f16, of the same bits as T(value) but for those of a NaN.
template <class T>
__device__ __forceinline__ T round_to(float value) {
  T half;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
  else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
  return half;
}
/// Exact. A bf16 is the upper half of its f32, which needs no instruction of its own.
__device__ __forceinline__ float widen(bf16 half) { return half; }
__device__ __forceinline__ float widen(f16 half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half.bits));
  return value;
}

}  // namespace weft::kernels::cuda::ptx
