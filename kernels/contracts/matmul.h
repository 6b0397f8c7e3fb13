// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/activation.h"
#include "kernels/kernel.h"

namespace weft::kernels {

struct MatmulArguments {
  double alpha = 1;
  Grad grad = Grad::overwrite;  ///< accumulate adds to y
};

/// y[b] = alpha a[b] @ b[b] (+ bias): a [B, M, K], b [B, K, N], y [B, M, N], bias [N] or none. Rank 3 always; a batch
/// stride of 0 broadcasts. In a and b one of the last two strides must be 1 (a transposed matrix has stride 1 on its
/// second-last dimension); y is row-major, its rows dense and any distance apart. K = 0 gives bias or 0.
/// dtypes: a and b equal (f32, f64, bf16, f16); y and bias equal to them or, for bf16/f16 inputs, f32.
/// Accumulates in f32 (f64 for f64). kernels/runtime/f32_products.h may round f32 operands.
WEFT_KERNEL(matmul, const Queue& queue, const View& y, const View& a, const View& b, const View& bias,
            MatmulArguments arguments);

struct MatmulFusedArguments {
  double alpha = 1;
  Activation activation = Activation::none;
};

/// y[b] = f(s) + residual[b], s = alpha a[b] @ b[b] (+ bias): matmul and its epilogue in one pass over y. f is applied
/// to the accumulator s before any rounding. `pre` (or none) receives s, which f's backward needs; residual may be
/// none, or y itself. Both have y's sizes, strides and dtype; everything else is as in matmul.
WEFT_KERNEL(matmul_fused, const Queue& queue, const View& y, const View& pre, const View& a, const View& b,
            const View& bias, const View& residual, MatmulFusedArguments arguments);

/// Checks pre and residual of matmul_fused: y's dtype, sizes and strides (those of a dimension of size 1 are free).
inline bool is_laid_out_as(const View& view, const View& y) {
  bool same = view.dtype == y.dtype && view.same_sizes(y);
  for (int d = 0; d < y.rank; ++d) same = same && (y.sizes[d] == 1 || view.strides[d] == y.strides[d]);
  return same;
}

}  // namespace weft::kernels
