// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/unary_math.h"

namespace weft::kernels {

/// Activations that a GEMM's epilogue may apply to its accumulators.
enum class Activation : uint8_t {
  none,
  relu,
  gelu,      ///< with erf
  gelu_tanh  ///< the approximation with tanh
};

/// The function of kernels/contracts/unary.h with the same name; Activation::none has no such function.
constexpr Unary unary_of(Activation activation) {
  return activation == Activation::relu ? Unary::relu : activation == Activation::gelu ? Unary::gelu : Unary::gelu_tanh;
}

/// values[i] = f(values[i]), with one branch for all values.
template <int kCount, class T>
WEFT_HD void activate(Activation activation, T (&values)[kCount]) {
  if (activation == Activation::relu) {
    for (int i = 0; i < kCount; ++i) values[i] = unary_value<Unary::relu>(values[i], T(0), T(0));
  } else if (activation == Activation::gelu) {
    for (int i = 0; i < kCount; ++i) values[i] = unary_value<Unary::gelu>(values[i], T(0), T(0));
  } else if (activation == Activation::gelu_tanh) {
    for (int i = 0; i < kCount; ++i) values[i] = unary_value<Unary::gelu_tanh>(values[i], T(0), T(0));
  }
}

/// values[i] *= f'(saved[i]). `saved` is f's argument; for relu it may be f's result.
template <int kCount, class T>
WEFT_HD void activate_backward(Activation activation, T (&values)[kCount], const T (&saved)[kCount]) {
  if (activation == Activation::relu) {
    for (int i = 0; i < kCount; ++i) values[i] = unary_gradient<Unary::relu>(values[i], saved[i], T(0), T(0));
  } else if (activation == Activation::gelu) {
    for (int i = 0; i < kCount; ++i) values[i] = unary_gradient<Unary::gelu>(values[i], saved[i], T(0), T(0));
  } else if (activation == Activation::gelu_tanh) {
    for (int i = 0; i < kCount; ++i) values[i] = unary_gradient<Unary::gelu_tanh>(values[i], saved[i], T(0), T(0));
  }
}

}  // namespace weft::kernels
