// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/activation.h"
#include "kernels/cuda/ptx_hopper.cuh"
#include "kernels/cuda/unroll.cuh"

// GELU (with erf) and its derivative for results of 16 bits, in 11 and 15 instructions, where erff alone is 25 and
// more. log2 of the lower tail Phi(-a), a >= 0, is nearly a parabola: a polynomial of degree 7, the minimax one on [0,
// 7], is within 1.4e-5, so the tail is within e = 1e-5 of itself: 2^-16, where f16 rounds to 2^-11 and bf16 to 2^-8.
// The polynomial goes on falling, as the tail does.
//
//   gelu(x) = max(x, 0) - a Phi(-a), a = |x|
//
// For x < 0 its relative error is the tail's, e. For x > 0 it is e Phi(-x) / Phi(x), at most e. a ends at 40, where the
// tail is 0 in f32: so infinity stays infinity, and -infinity becomes 0, the limit.

namespace weft::kernels::WEFT_DEVICE {

/// Phi(-a), a >= 0.
__device__ __forceinline__ float short_normal_tail(float a) {
  float power = -1.58822165e-06f;
  constexpr float kRest[] = {5.61534971e-05f, -0.000883216853f, 0.00830322662f, -0.0535013395f,
                             -0.458964301f,   -1.15103569f,     -1.00001399f};
  WEFT_UNROLL
  for (const float next : kRest) power = fmaf(power, a, next);
  return ptx::exp2_approx(power);
}

__device__ __forceinline__ float short_gelu(float x) {
  const float a = fminf(fabsf(x), 40.0f);
  return fmaf(-a, short_normal_tail(a), ptx::max_or_nan(x, 0.0f));
}

__device__ __forceinline__ float short_gelu_slope(float x) {
  const float density = ptx::exp2_approx(fmaf(-0.72134752f * x, x, -1.3257481f));  // exp(-x^2 / 2) / sqrt(2 pi)
  const float tail = short_normal_tail(fabsf(x));
  return fmaf(x, density, x > 0.0f ? 1.0f - tail : tail);
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
