// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/activation.h"
#include "kernels/kernel.h"

// The gradients of y = x w^T + bias, x [M, I], w [O, I], y [M, O], that need more than a GEMM. The forward and plain
// gradients are matmul calls.

namespace weft::kernels {

/// dx = (dy @ w) f'(saved), elementwise: the gradient through x = f(saved), in one pass. f' is applied to the
/// accumulators before any rounding. dx, saved [M, I] have equal strides and one dtype; dx is dense; dy [M, O], w [O,
/// I], each with stride 1 in one of its dimensions. dtypes: dy and w equal (f32, f64, bf16, f16); dx equal to them or,
/// for bf16 and f16, f32. f: not none. For relu, `saved` may be f's result. O = 0 gives 0.
WEFT_KERNEL(linear_backward_input, const Queue& queue, const View& dx, const View& dy, const View& w, const View& saved,
            Activation f);

/// dw = dy^T @ x and db[o] = sum over m of dy[m, o], from the same reads of dy. dw [O, I] dense, db [O] dense; dy
/// [M, O] and x [M, I] with stride 1 along their rows. dtypes: dy and x equal (f32, f64, bf16, f16); dw and db, each on
/// its own, equal to them or, for bf16 and f16, f32. Accumulates in f32 (f64 for f64), in an order that depends on the
/// sizes alone. M = 0 gives 0.
WEFT_KERNEL(linear_backward_weight, const Queue& queue, const View& dw, const View& db, const View& dy, const View& x);

/// Check the contracts' arguments.
void check_linear_backward_input(const View& dx, const View& dy, const View& w, const View& saved, Activation f);
void check_linear_backward_weight(const View& dw, const View& db, const View& dy, const View& x);

}  // namespace weft::kernels
