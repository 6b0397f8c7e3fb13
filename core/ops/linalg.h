// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "core/tensor.h"

namespace weft {

// Linear algebra of matrices [..., M, N] in f32 or f64 by LAPACK, on a GPU by cuSOLVER; leading dimensions are a batch.
// K = min(M, N). On a GPU a call waits for the device. Errors: another dtype, inf or NaN, sizes that do not fit, a
// build without LAPACK. Gradients are formulas of ops, and have gradients themselves.

struct Svd {
  Tensor u;   ///< [..., M, K], orthonormal columns
  Tensor s;   ///< [..., K], from the largest
  Tensor vh;  ///< [..., K, N], orthonormal rows
};
/// x = u diag(s) vh, the reduced decomposition. Gradients of u and vh need different singular values.
Svd svd(const Tensor& x);
/// svd()'s s.
Tensor svdvals(const Tensor& x);

struct Eigh {
  Tensor values;   ///< [..., N], from the smallest
  Tensor vectors;  ///< [..., N, N], orthonormal columns
};
/// Symmetric x [..., N, N] = v diag(w) v^T: the lower triangle is read, and the gradient is symmetric. Gradients of
/// vectors need different values.
Eigh eigh(const Tensor& x);
/// eigh()'s values.
Tensor eigvalsh(const Tensor& x);

struct Qr {
  Tensor q;  ///< [..., M, K], orthonormal columns
  Tensor r;  ///< [..., K, N], upper triangular
};
/// x = q r, the reduced decomposition. Gradients need the first K columns to be independent.
Qr qr(const Tensor& x);

/// The lower triangular l with l l^T = x: the lower triangle of x is read, and the gradient is symmetric. Errors: not
/// positive-definite.
Tensor cholesky(const Tensor& x);

/// y with a y = b: a [..., N, N], b [..., N, K] or a vector [N]; leading dimensions broadcast. Errors: a is singular.
Tensor solve(const Tensor& a, const Tensor& b);
/// As above for a triangle of a: the lower one, or the upper. Errors: a 0 on the diagonal.
Tensor triangular_solve(const Tensor& a, const Tensor& b, bool upper);
/// Errors: singular.
Tensor inverse(const Tensor& x);
/// y with the smallest 2-norm of a y - b, and of them the smallest y: a [..., M, N], b [..., M, K]. QR computes
/// it, or pinv() if a pivot is at most max(M, N) epsilon of the largest: scale columns whose sizes differ that much.
Tensor lstsq(const Tensor& a, const Tensor& b);
/// The pseudoinverse [..., N, M]. Singular values up to `tolerance` times the largest count as 0 (none: max(M, N)
/// machine epsilons). The gradient holds where the rank does not change.
Tensor pinv(const Tensor& x, std::optional<double> tolerance = {});

/// The determinant, 0 for a singular matrix, which has no second derivative (an error).
Tensor det(const Tensor& x);

struct SlogDet {
  Tensor sign;       ///< [...], 1, -1 or 0
  Tensor logabsdet;  ///< [...], -inf for a singular matrix
};
/// The determinant's sign and the logarithm of its size.
SlogDet slogdet(const Tensor& x);

/// `frobenius`: the root of the sum of squares. `nuclear`: the sum of singular values. `spectral`: the largest singular
/// value. `columns`, `rows`: the largest sum of |x| in a column, in a row.
enum class MatrixNorm { frobenius, nuclear, spectral, columns, rows };
/// A norm of each matrix. Errors: as above.
Tensor matrix_norm(const Tensor& x, MatrixNorm order = MatrixNorm::frobenius, bool keep_dims = false);
/// (sum of |x|^order)^(1 / order) over `dims` (none: all); inf: the largest |x|, -inf: the smallest, 0: how many are
/// not 0. Errors: not floating, NaN as order.
Tensor vector_norm(const Tensor& x, double order = 2, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

}  // namespace weft
