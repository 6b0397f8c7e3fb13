// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include "kernels/half.h"

// PTX of conversions between f32 and bf16 or f16, for kernels/cuda/convert.cuh. The emulator uses kernels/half.h
// instead.

namespace weft::kernels::cuda::ptx {

/// Rounds to bf16 or f16, to nearest even; the same bits as T(value), except for NaN.
template <class T>
__device__ __forceinline__ T round_to(float value) {
  T half;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
  else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
  return half;
}
/// Converts exactly. A bf16 is the upper half of its f32, so no special instruction is needed.
__device__ __forceinline__ float widen(bf16 half) { return half; }
__device__ __forceinline__ float widen(f16 half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half.bits));
  return value;
}

}  // namespace weft::kernels::cuda::ptx
