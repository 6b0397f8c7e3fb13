// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "kernels/contracts/activation.h"
#include "kernels/kernel.h"

namespace weft {

/// The GEMM of matmul and linear, without autograd: a [M, K] or [B, M, K], b [K, N] or [B, K, N], bias [N] or
/// undefined. a and b share rank and dtype. Any strides: operands that the kernel does not take are copied first.
/// `dtype` of the result: the operands', or f32 for bf16 and f16. may_pitch: rows of a broad result in 16 bits on a GPU
/// may have gaps, so that each begins at a multiple of 16 bytes. This product and those of its gradient then stay on
/// the fast kernels.
Tensor multiply(const Tensor& a, const Tensor& b, const Tensor& bias, DType dtype, bool may_pitch = false);
/// As above, into `y` (its rows dense), or added to it.
void multiply_into(const Tensor& y, const Tensor& a, const Tensor& b, const Tensor& bias,
                   kernels::Grad grad = kernels::Grad::overwrite);
/// dx = (dy w) f'(saved) by linear_backward_input: dy [M, O], w [O, I], saved dense, M I elements of dx's dtype.
Tensor multiply_backward(const Tensor& dy, const Tensor& w, const Tensor& saved, kernels::Activation f);
/// dw = dy^T x and db = the sums of dy's columns: dy [M, O], x [M, I], dw [O, I] and db [O] dense.
void multiply_rows_into(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x);
/// y = f(s), s = a b + bias, and s itself into `pre`, where that is defined. y and pre are dense, of one dtype.
void multiply_fused_into(const Tensor& y, const Tensor& pre, const Tensor& a, const Tensor& b, const Tensor& bias,
                         kernels::Activation activation);

}  // namespace weft
