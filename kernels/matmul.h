// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

struct MatmulArguments {
  double alpha = 1;
  Grad grad = Grad::overwrite;  ///< accumulate adds to what y holds
};

/// y[b] = alpha a[b] @ b[b] (+ bias): a [B, M, K], b [B, K, N], y [B, M, N], bias [N] or none. Rank 3 always; a batch
/// stride of 0 broadcasts. In a and b one of the last two strides must be 1 (a transposed matrix has stride 1 on its
/// second-last dimension); y is row-major contiguous in its last two dimensions. K = 0 gives bias or 0.
/// dtypes: a and b equal (f32, f64, bf16, f16); y and bias equal to them or, for bf16/f16 inputs, f32.
/// Accumulates in f32 (f64 for f64).
WEFT_KERNEL(matmul, const Queue& queue, const View& y, const View& a, const View& b, const View& bias,
            MatmulArguments arguments);

}  // namespace weft::kernels
