// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/unary_math.h"
#include "kernels/cpu/vector_math.h"

namespace weft::kernels::cpu {

/// y = f(x) for n dense elements; y may be x. a and b are UnaryArguments.
template <class C>
using UnaryLoop = void (*)(C* y, const C* x, int64_t n, C a, C b);
/// dx = dy f'(saved); dx may be dy or saved.
template <class C>
using UnaryGradientLoop = void (*)(C* dx, const C* dy, const C* saved, int64_t n, C a, C b);

/// The loop for f, for results that become `result`; null where f does not take C (float, double or int64_t).
template <class C>
UnaryLoop<C> unary_loop(Unary f, DType result);
template <class C>
UnaryGradientLoop<C> unary_gradient_loop(Unary f);

/// Loops in f32 that are bound by the length of their chains of operations: vectors of twice the width take half of the
/// time.
struct MathLoops {
  UnaryLoop<float> value[kUnaryCount];  ///< in the order of the table
  UnaryGradientLoop<float> gradient[kUnaryCount];
  UnaryLoop<float> gelu_for_bf16;
  /// x = e^(x - base); returns the sum.
  float (*exponentials)(float* x, int64_t n, float base);
};
const MathLoops& math_avx2();    ///< vectors of 8 floats; runs on any processor
const MathLoops& math_avx512();  ///< vectors of 16 floats, where has_avx512()
const MathLoops& math_loops();   ///< for this processor

namespace {  // compiled once for each instruction set

struct Math : VectorMath {};

template <Unary f, class C>
void value_loop(C* y, const C* x, int64_t n, C a, C b) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = unary_value<f, Math>(x[i], a, b);
}

template <Unary f, class C>
void gradient_loop(C* dx, const C* dy, const C* saved, int64_t n, C a, C b) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = unary_gradient<f, Math>(dy[i], saved[i], a, b);
}

[[maybe_unused]] void gelu_for_bf16_loop(float* y, const float* x, int64_t n, float, float) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = VectorMath::gelu_for_bf16(x[i]);
}

template <class C>
C exponentials_loop(C* x, int64_t n, C base) {
  C total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < n; ++i) {
    x[i] = VectorMath::exp(x[i] - base);
    total += x[i];
  }
  return total;
}

#define WEFT_VALUE(name, ...) value_loop<Unary::name, float>,
#define WEFT_GRADIENT(name, ...) gradient_loop<Unary::name, float>,
[[maybe_unused]] constexpr MathLoops kMathLoops{{WEFT_UNARY_TABLE(WEFT_VALUE, WEFT_VALUE)},
                                                {WEFT_UNARY_TABLE(WEFT_GRADIENT, WEFT_GRADIENT)},
                                                gelu_for_bf16_loop,
                                                exponentials_loop<float>};
#undef WEFT_GRADIENT
#undef WEFT_VALUE

}  // namespace
}  // namespace weft::kernels::cpu
