// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/activation.h"
#include "kernels/cuda/ptx/ptx_hopper.cuh"
#include "kernels/cuda/unroll.cuh"

// GELU (with erf) and its derivative for 16-bit results, in 11 and 15 instructions; erff alone takes 25 and more. log2
// of the lower tail Phi(-a), a >= 0, is nearly a parabola: the minimax polynomial of degree 7 on [0, 7] has an error of
// 1.4e-5. So the tail has a relative error e = 1e-5, about 2^-16; f16 rounds to 2^-11 and bf16 to 2^-8. Beyond 7 the
// polynomial keeps falling, as the tail does.
//
//   gelu(x) = max(x, 0) - a Phi(-a), a = |x|
//
// For x < 0 its relative error is the tail's, e. For x > 0 it is e Phi(-x) / Phi(x), at most e. a ends at 40, where the
// tail is 0 in f32: so infinity stays infinity, and -infinity becomes 0, the limit.
//
// Each step is computed for kInterleaved values before the next step: a single value would wait for the previous result
// at every step, and in an epilogue each scheduler has only one warp.

namespace weft::kernels::cuda {

/// Phi(-a), a >= 0.
template <int N>
__device__ __forceinline__ void short_normal_tails(float (&tails)[N], const float (&a)[N]) {
  constexpr float kRest[] = {5.61534971e-05f, -0.000883216853f, 0.00830322662f, -0.0535013395f,
                             -0.458964301f,   -1.15103569f,     -1.00001399f};
  WEFT_UNROLL
  for (float& tail : tails) tail = -1.58822165e-06f;
  WEFT_UNROLL
  for (const float next : kRest) WEFT_UNROLL
  for (int i = 0; i < N; ++i) tails[i] = fmaf(tails[i], a[i], next);
  WEFT_UNROLL
  for (float& tail : tails) tail = ptx::exp2_approx(tail);
}

/// values = gelu(values).
template <int N>
__device__ __forceinline__ void short_gelu(float (&values)[N]) {
  float a[N], tails[N];
  WEFT_UNROLL
  for (int i = 0; i < N; ++i) a[i] = fminf(fabsf(values[i]), 40.0f);
  short_normal_tails(tails, a);
  WEFT_UNROLL
  for (int i = 0; i < N; ++i) values[i] = fmaf(-a[i], tails[i], ptx::max_or_nan(values[i], 0.0f));
}

/// values *= gelu'(x).
template <int N>
__device__ __forceinline__ void multiply_by_short_gelu_slope(float (&values)[N], const float (&x)[N]) {
  float a[N], densities[N], tails[N];
  WEFT_UNROLL
  for (int i = 0; i < N; ++i) a[i] = fabsf(x[i]), densities[i] = -0.72134752f * x[i];
  WEFT_UNROLL
  for (int i = 0; i < N; ++i) densities[i] = fmaf(densities[i], x[i], -1.3257481f);
  WEFT_UNROLL
  for (float& density : densities) density = ptx::exp2_approx(density);  // exp(-x^2 / 2) / sqrt(2 pi)
  short_normal_tails(tails, a);
  WEFT_UNROLL
  for (int i = 0; i < N; ++i) values[i] *= fmaf(x[i], densities[i], x[i] > 0.0f ? 1.0f - tails[i] : tails[i]);
}

constexpr int kInterleaved = 8;

/// activate() for values that will be rounded to Y.
template <class Y, int kCount>
__device__ __forceinline__ void activate_for(Activation activation, float (&values)[kCount]) {
  if constexpr (sizeof(Y) == 2) {
    if (activation == Activation::gelu) {
      static_assert(kCount % kInterleaved == 0);
      WEFT_UNROLL
      for (int i = 0; i < kCount; i += kInterleaved) short_gelu(reinterpret_cast<float(&)[kInterleaved]>(values[i]));
      return;
    }
  }
  activate(activation, values);
}

}  // namespace weft::kernels::cuda
