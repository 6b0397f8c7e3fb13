// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

// Factorisations of B matrices, in f32 or f64, dense and row-major. K = min(M, N). An error names the first matrix
// that has none.

/// x [B, M, N] = u diag(s) vh: u [B, M, K], s [B, K] from the largest, vh [B, K, N].
WEFT_KERNEL(svd, const Queue& queue, const View& u, const View& s, const View& vh, const View& x);

/// x [B, N, N] = v diag(w) v^T: w [B, N] from the smallest, v [B, N, N]. x's lower triangle is read.
WEFT_KERNEL(eigh, const Queue& queue, const View& w, const View& v, const View& x);

/// x [B, M, N] = q r: q [B, M, K] with orthonormal columns, r [B, K, N] upper triangular.
WEFT_KERNEL(qr, const Queue& queue, const View& q, const View& r, const View& x);

/// x [B, N, N] = l l^T, l [B, N, N] lower triangular. x's lower triangle is read. Errors: not positive-definite.
WEFT_KERNEL(cholesky, const Queue& queue, const View& l, const View& x);

/// x [B, N, N] = P l u: `lu` [B, N, N] holds u, and l below the diagonal; parity [B] is the determinant of P.
WEFT_KERNEL(lu, const Queue& queue, const View& lu, const View& parity, const View& x);

/// a y = b: a [B, N, N], y and b [B, N, K]. Errors: a is singular.
WEFT_KERNEL(solve, const Queue& queue, const View& y, const View& a, const View& b);

/// As above for a triangle of a: the upper one if `upper`. Errors: a zero on the diagonal.
WEFT_KERNEL(triangular_solve, const Queue& queue, const View& y, const View& a, const View& b, bool upper);

}  // namespace weft::kernels
