// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/half.h"

// One unit of kernels/contracts/recurrent.h, for every device. S is the type of the computation, Math has exp and tanh
// (kernels/contracts/unary_math.h).

namespace weft::kernels {

template <class Math, class S>
WEFT_HD S logistic(S x) {
  return S(1) / (S(1) + Math::exp(-x));
}

template <class S>
struct LstmGates {
  S i, f, g, o;
};

template <class Math, class S>
WEFT_HD void lstm_forward(LstmGates<S>& gates, S& c, S& h, S c_before) {
  gates = {logistic<Math>(gates.i), logistic<Math>(gates.f), Math::tanh(gates.g), logistic<Math>(gates.o)};
  c = gates.f * c_before + gates.i * gates.g;
  h = gates.o * Math::tanh(c);
}

/// `gates`: the forward's output. Returns the gradients of the pre-activations and replaces dc by c_before's gradient.
template <class Math, class S>
WEFT_HD LstmGates<S> lstm_backward(const LstmGates<S>& gates, S c, S c_before, S dh, S& dc) {
  const S y = Math::tanh(c);
  const S d = dc + dh * gates.o * (S(1) - y * y);
  dc = d * gates.f;
  return {d * gates.g * gates.i * (S(1) - gates.i), d * c_before * gates.f * (S(1) - gates.f),
          d * gates.i * (S(1) - gates.g * gates.g), dh * y * gates.o * (S(1) - gates.o)};
}

/// The gates and the new value, and from_h's part of the new value before multiplication by r.
template <class S>
struct GruValues {
  S r, z, n, from_h;
};

template <class Math, class S>
WEFT_HD S gru_forward(GruValues<S>& v, S x_r, S x_z, S x_n, S h_r, S h_z, S h_n, S h_before) {
  v.r = logistic<Math>(x_r + h_r);
  v.z = logistic<Math>(x_z + h_z);
  v.n = Math::tanh(x_n + v.r * h_n);
  v.from_h = h_n;
  return v.n + v.z * (h_before - v.n);
}

/// Gradients of the three pre-activations (n's without r), and of h_before through z.
template <class S>
struct GruGradients {
  S r, z, n, h_before;
};

template <class S>
WEFT_HD GruGradients<S> gru_backward(const GruValues<S>& v, S h_before, S dh) {
  const S dn = dh * (S(1) - v.z) * (S(1) - v.n * v.n);
  return {dn * v.from_h * v.r * (S(1) - v.r), dh * (h_before - v.n) * v.z * (S(1) - v.z), dn, dh * v.z};
}

}  // namespace weft::kernels
