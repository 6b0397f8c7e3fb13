// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "core/tensor.h"

namespace weft {

/// Which way a recurrent layer goes through a sequence.
enum class Direction { forward, backward };

/// An LSTM over T steps. from_x [T, B, 4 H]: the products with the input, all biases added, gates in the order input,
/// forget, cell, output; weight [4 H, H] of the hidden state; h, c [B, H] before the first step. Per step: i, f, o =
/// sigmoid, g = tanh of from_x[t] + h weight^T; c = f c + i g; h = o tanh(c). Returns [T + 1, B, H]: h of each step, in
/// the sequence's order, and c of the last step. The gradient goes back through time in the same op: a GEMM per step,
/// and a single GEMM for the weight. Not under autocast. Errors: sizes or dtypes that do not fit, no step.
Tensor lstm(const Tensor& from_x, const Tensor& weight, const Tensor& h, const Tensor& c,
            Direction direction = Direction::forward);

/// A GRU over T steps. from_x [T, B, 3 H]: products with the input and their bias, in the order reset, update, new;
/// weight [3 H, H] and bias [3 H] (or undefined) of the hidden state; h [B, H]. Per step, s = h weight^T + bias: r, z =
/// sigmoid(x + s); n = tanh(x_n + r s_n); h = (1 - z) n + z h. Returns h of each step [T, B, H]. Otherwise as lstm().
Tensor gru(const Tensor& from_x, const Tensor& weight, const Tensor& bias, const Tensor& h,
           Direction direction = Direction::forward);

/// Weights of one direction of a layer with G gates: for the input [G H, I] and the hidden state [G H, H], each with a
/// bias [G H], or none.
struct RecurrentWeights {
  Tensor of_x, of_h, bias_x, bias_h;
};

/// The result of `own`, which is lstm() or gru() after the product of x [T, B, I] with its weight. If WEFT_ENGINE
/// chooses cuDNN (docs/engines.md), cuDNN computes both at once. c: an LSTM's cell state, else undefined.
Tensor recurrent_layer(const Tensor& x, const RecurrentWeights& weights, const Tensor& h, const Tensor& c,
                       Direction direction, const std::function<Tensor()>& own);

}  // namespace weft
