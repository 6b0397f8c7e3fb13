// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/attention.h"
#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/matmul.h"
#include "kernels/engines/problem.h"

namespace weft::kernels::vendor {

/// A call of matmul, of matmul_fused without `pre`, or of linear_backward_weight as a matmul, whose arguments the
/// contract has checked.
struct MatmulCall {
  const Queue& queue;
  const View &y, &a, &b, &bias;
  const MatmulArguments& arguments;
  Activation activation = Activation::none;
  View residual{};
  View row_sums{};  ///< given: receives the sums of a's rows
};

enum class Direction : uint8_t { forward, backward_input, backward_weight };

/// The norm that conv2d_norm applies after its convolution.
struct Conv2dNorm {
  const View &mean, &var, &weight, &norm_bias, &residual;
  double eps;
  bool relu;
};

/// A call of one of the three directions of conv2d, checked. x, w and y are activations, filters and result, or the
/// corresponding gradients: dx is x of backward_input, dw is w of backward_weight, dy is y of both.
struct Conv2dCall {
  Direction direction;
  const Queue& queue;
  const View &x, &w, &y, &bias;
  const Conv2dArguments& arguments;
  const Conv2dNorm* norm = nullptr;  ///< set by conv2d_norm
  const View* part = nullptr;        ///< set by conv2d_statistics
};

/// `conv2d_forward`, …
const char* op_of(Direction direction);
/// The op's name, conv2d_norm or conv2d_statistics included.
const char* op_of(const Conv2dCall& call);
/// The convolution alone of a call.
Conv2dCall convolution_of(const Conv2dCall& call);

/// Factors of this dtype may be rounded to tf32 (kernels/runtime/f32_products.h).
bool may_use_tf32(DType dtype);

/// The key that distinguishes the calls: everything but addresses, of which the alignment counts; and for f32
/// whether tf32 is allowed.
Problem problem_of(const MatmulCall& call);
Problem problem_of(const Conv2dCall& call);

/// The largest power of two up to 16 that divides the view's address: libraries choose kernels by it.
int64_t alignment_of(const View& view);

/// A call of attention_forward (dy, dq, dk, dv: none) or of attention_backward, whose arguments the contract has
/// checked.
struct AttentionCall {
  const Queue& queue;
  const View &y, &lse, &q, &k, &v, &key_lengths, &key_mask;
  const AttentionArguments& arguments;
  View dy{}, dq{}, dk{}, dv{};
  bool backward = false;

  const char* op() const { return backward ? "attention_backward" : "attention_forward"; }
};

/// The key that distinguishes the calls: everything but addresses and the scale.
Problem problem_of(const AttentionCall& call);

}  // namespace weft::kernels::vendor
