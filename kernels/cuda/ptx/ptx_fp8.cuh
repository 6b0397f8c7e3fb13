// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include "kernels/contracts/fp8.h"

// PTX of conversions to FP8 (cvt, compute capability 8.9 and later). Other devices and the emulator use kernels/contracts/fp8.h,
// with the same bits.

namespace weft::kernels::cuda::ptx {

/// Two codes as from to_fp8(); the code of `low` is in the lower byte.
template <Fp8 format>
__device__ __forceinline__ uint32_t to_fp8_pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16_t pair;
  if constexpr (format == Fp8::e4m3)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return to_fp8(format, low) | static_cast<uint32_t>(to_fp8(format, high)) << 8;
#endif
}

}  // namespace weft::kernels::cuda::ptx
