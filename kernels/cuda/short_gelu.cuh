// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/activation.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/unroll.cuh"

// GELU (with erf) and its derivative for results of 16 bits, in about 12 and 16 instructions, where erff alone is 25 and
// more. log2 of the lower tail Phi(-a), a >= 0, is nearly a parabola: a polynomial of degree 7, fitted to it on [0, 7], is
// within 1.4e-5, so the tail is within 1e-5 of itself: 2^-16, where f16 rounds to 2^-11 and bf16 to 2^-8. The polynomial goes on
// falling, as the tail does.

namespace weft::kernels::WEFT_DEVICE {

__device__ __forceinline__ float short_normal_cdf(float x) {
  const float a = fabsf(x);
  float power = -1.58822165e-06f;
  constexpr float kRest[] = {5.61534971e-05f, -0.000883216853f, 0.00830322662f, -0.0535013395f,
                             -0.458964301f,   -1.15103569f,     -1.00001399f};
  WEFT_UNROLL
  for (const float next : kRest) power = fmaf(power, a, next);
  const float tail = ptx::exp2_approx(power);
  return x > 0.0f ? 1.0f - tail : tail;
}

__device__ __forceinline__ float short_gelu(float x) { return x * short_normal_cdf(x); }

__device__ __forceinline__ float short_gelu_slope(float x) {
  const float density = 0.39894228f * ptx::exp2_approx(-0.72134752f * x * x);
  return fmaf(x, density, short_normal_cdf(x));
}

/// activate() for values that will be rounded to Y.
template <class Y, int kCount>
__device__ __forceinline__ void activate_for(Activation activation, float (&values)[kCount]) {
  if constexpr (sizeof(Y) == 2) {
    if (activation == Activation::gelu) {
      WEFT_UNROLL
      for (float& value : values) value = short_gelu(value);
      return;
    }
  }
  activate(activation, values);
}

}  // namespace weft::kernels::WEFT_DEVICE
