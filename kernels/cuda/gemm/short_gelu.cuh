// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/activation.h"
#include "kernels/cuda/ptx/ptx_hopper.cuh"
#include "kernels/cuda/unroll.cuh"

// GELU and its derivative for 16-bit results. With erf: in 11 and 15 instructions; erff alone takes 25 and more. log2
// of the lower tail Phi(-a), a >= 0, is nearly a parabola: the minimax polynomial of degree 7 on [0, 7] has an error of
// 1.4e-5. So the tail has a relative error e = 1e-5, about 2^-16; f16 rounds to 2^-11 and bf16 to 2^-8. Beyond 7 the
// polynomial keeps falling, as the tail does.
//
//   gelu(x) = max(x, 0) - a Phi(-a), a = |x|
//
// For x < 0 its relative error is the tail's, e. For x > 0 it is e Phi(-x) / Phi(x), at most e. a ends at 40, where the
// tail is 0 in f32: so infinity stays infinity, and -infinity becomes 0, the limit.
//
// With tanh (GPT's): in 7 and 14 instructions where tanhf takes a branch and some 20.
//
//   gelu(x) = x s, s = 1 / (1 + 2^t), t = -2 log2(e) sqrt(2 / pi) (x + 0.044715 x^3)
//
// |t| is at most 126 where s is normal, so t's rounding makes s wrong by a factor of at most 1 + 2^-16. No 1 + tanh
// cancels, so small results in the lower tail stay right, too.
//
// With erf each step is computed for kInterleaved values before the next step: a single value would wait for the
// previous result at every step, and in an epilogue each scheduler has only one warp.

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

/// 1 / (1 + 2^t), the share of x that GELU with tanh lets through. Factors and addends are immediate: no register holds a
/// constant.
__device__ __forceinline__ float gelu_tanh_share(float x) {
  return ptx::reciprocal_approx(1.0f + ptx::exp2_approx(fmaf(x, x, 22.36386f) * (-0.10294324f * x)));
}

/// values = gelu(values), the form with tanh. -infinity becomes NaN, as on the CPU.
template <int N>
__device__ __forceinline__ void short_gelu_tanh(float (&values)[N]) {
  WEFT_UNROLL
  for (float& value : values) value *= gelu_tanh_share(value);
}

/// values *= gelu'(x), the form with tanh: s + x s (1 - s) (2 sqrt(2 / pi) (1 + 3 0.044715 x^2)).
template <int N>
__device__ __forceinline__ void multiply_by_short_gelu_tanh_slope(float (&values)[N], const float (&x)[N]) {
  WEFT_UNROLL
  for (int i = 0; i < N; ++i) {
    const float share = gelu_tanh_share(x[i]);
    const float bounded = fminf(fmaxf(x[i], -40.0f), 40.0f);  // no 0 times infinity; the share keeps NaN
    const float inner = fmaf(bounded, bounded, 7.45462f) * (0.21406445f * bounded);
    values[i] *= share * fmaf(1.0f - share, inner, 1.0f);
  }
}

constexpr int kInterleaved = 8;

/// Whether results in 16 bits take the short form of `f`.
template <Unary f>
inline constexpr bool kHasShortForm = f == Unary::gelu || f == Unary::gelu_tanh;

/// values = f(values).
template <Unary f, int N>
__device__ __forceinline__ void short_value(float (&values)[N]) {
  if constexpr (f == Unary::gelu)
    short_gelu(values);
  else
    short_gelu_tanh(values);
}

/// values *= f'(x).
template <Unary f, int N>
__device__ __forceinline__ void multiply_by_short_slope(float (&values)[N], const float (&x)[N]) {
  if constexpr (f == Unary::gelu)
    multiply_by_short_gelu_slope(values, x);
  else
    multiply_by_short_gelu_tanh_slope(values, x);
}

/// activate() for values that will be rounded to Y.
template <class Y, int kCount>
__device__ __forceinline__ void activate_for(Activation activation, float (&values)[kCount]) {
  if constexpr (sizeof(Y) == 2) {
    static_assert(kCount % kInterleaved == 0);
    const auto by_eights = [&](auto&& short_form) {
      WEFT_UNROLL
      for (int i = 0; i < kCount; i += kInterleaved) short_form(reinterpret_cast<float(&)[kInterleaved]>(values[i]));
    };
    if (activation == Activation::gelu) return by_eights([](auto& eight) { short_gelu(eight); });
    if (activation == Activation::gelu_tanh) return by_eights([](auto& eight) { short_gelu_tanh(eight); });
  }
  activate(activation, values);
}

}  // namespace weft::kernels::cuda
