// SPDX-License-Identifier: Apache-2.0
#include "core/ops/linalg.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/linalg.h"

namespace weft {
namespace {

void check_matrices(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && (x.dtype() == DType::f32 || x.dtype() == DType::f64) && x.dim() >= 2, op,
             ": expected matrices [..., M, N] in f32 or f64, got ", x);
}

void check_square(const char* op, const Tensor& x) {
  check_matrices(op, x);
  WEFT_CHECK(x.size(-1) == x.size(-2), op, ": expected square matrices [..., N, N], got ", x);
}

Tensor t(const Tensor& x) { return x.transpose(-1, -2); }

/// x's leading dimensions and then `last`.
Shape leading(const Tensor& x, std::initializer_list<int64_t> last) {
  const Shape all = x.sizes();
  std::vector<int64_t> sizes(all.begin(), all.end() - 2);
  sizes.insert(sizes.end(), last);
  return Shape(sizes);
}

/// Matrices as one batch [B, M, N].
Tensor batch(const Tensor& x) {
  int64_t count = 1;
  for (int d = 0; d + 2 < x.dim(); ++d) count *= x.size(d);
  return x.reshape({count, x.size(-2), x.size(-1)});
}

Tensor new_tensor(const Tensor& like, const Shape& sizes) { return Tensor::empty(sizes, like.dtype(), like.device()); }

// Several results of an op are parts of one tensor for autograd, so that a gradient sees them all. These functions join
// and take the parts.

/// [B, sum of the parts' sizes] from parts [B, …].
Tensor joined(const std::vector<Tensor>& parts) {
  std::vector<Tensor> flat;
  for (const Tensor& part : parts) flat.push_back(part.reshape({part.size(0), part.numel() / part.size(0)}));
  return concat(flat, 1);
}

/// The parts of the sizes without the batch.
std::vector<Tensor> taken(const Tensor& all, const std::vector<Shape>& sizes) {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (const Shape& shape : sizes) {
    std::vector<int64_t> with_batch(shape.begin(), shape.end());
    with_batch.insert(with_batch.begin(), all.size(0));
    parts.push_back(all.slice(1, at, shape.numel()).reshape(Shape(with_batch)));
    at += shape.numel();
  }
  return parts;
}

/// a / b, and 0 for 0 / 0: equal singular values, or 0, leave a gradient alone that does not depend on their vectors.
Tensor quotient(const Tensor& a, const Tensor& b) {
  const Tensor nothing = logical_and(eq(a.detach(), 0), eq(b.detach(), 0));
  return div(a, where(nothing, 1, b));
}

Tensor without_diagonal(const Tensor& x) { return sub(x, diag_embed(diagonal(x))); }

/// e[i, j] = s[j] - s[i]
Tensor differences(const Tensor& s) { return sub(s.unsqueeze(-2), s.unsqueeze(-1)); }

/// Whether a batch has no numbers, which LAPACK refuses.
void check_not_empty(const char* op, const Tensor& x) {
  WEFT_CHECK(x.numel() > 0, op, ": expected matrices with elements, got ", x);
}

/// svd() of a batch x [B, M, N].
Tensor svd_of_batch(const Tensor& x) {
  const int64_t B = x.size(0), M = x.size(1), N = x.size(2), K = std::min(M, N);
  const std::vector<Shape> sizes{{M, K}, {K}, {K, N}};
  Tensor y;
  {
    const NoGrad no_grad;
    const Tensor u = new_tensor(x, {B, M, K}), s = new_tensor(x, {B, K}), vh = new_tensor(x, {B, K, N});
    kernels::svd(x.queue(), u, s, vh, x.contiguous());
    y = joined({u, s, vh});
  }
  // Townsend 2016, "Differentiating the singular value decomposition".
  return differentiable(y, "svd", {x}, [=, y = Saved(y)](const Tensor& dy) {
    const std::vector<Tensor> parts = taken(y, sizes), gradients = taken(dy, sizes);
    const Tensor &u = parts[0], &s = parts[1], &vh = parts[2], &du = gradients[0], &ds = gradients[1];
    const Tensor dv = t(gradients[2]), v = t(vh);
    const Tensor e = differences(square(s));
    const Tensor of_u = matmul(t(u), du), of_v = matmul(vh, dv);
    const Tensor left = mul(quotient(sub(of_u, t(of_u)), e), s.unsqueeze(-2));
    const Tensor right = mul(s.unsqueeze(-1), quotient(sub(of_v, t(of_v)), e));
    Tensor dx = matmul(matmul(u, add(add(left, right), diag_embed(ds))), vh);
    if (M > K) dx = add(dx, matmul(quotient(sub(du, matmul(u, of_u)), s.unsqueeze(-2)), vh));
    if (N > K) dx = add(dx, matmul(u, quotient(t(sub(dv, matmul(v, of_v))), s.unsqueeze(-1))));
    return Grads{dx};
  });
}

Tensor eigh_of_batch(const Tensor& x) {
  const int64_t B = x.size(0), N = x.size(1);
  const std::vector<Shape> sizes{{N}, {N, N}};
  Tensor y;
  {
    const NoGrad no_grad;
    const Tensor w = new_tensor(x, {B, N}), v = new_tensor(x, {B, N, N});
    kernels::eigh(x.queue(), w, v, x.contiguous());
    y = joined({w, v});
  }
  return differentiable(y, "eigh", {x}, [=, y = Saved(y)](const Tensor& dy) {
    const std::vector<Tensor> parts = taken(y, sizes), gradients = taken(dy, sizes);
    const Tensor &w = parts[0], &v = parts[1];
    const Tensor turns = quotient(without_diagonal(matmul(t(v), gradients[1])), differences(w));
    const Tensor dx = matmul(matmul(v, add(turns, diag_embed(gradients[0]))), t(v));
    return Grads{div(add(dx, t(dx)), 2)};
  });
}

/// qr() of a batch x [B, M, N], M >= N.
Tensor qr_of_batch(const Tensor& x) {
  const int64_t B = x.size(0), M = x.size(1), N = x.size(2);
  const std::vector<Shape> sizes{{M, N}, {N, N}};
  Tensor y;
  {
    const NoGrad no_grad;
    const Tensor q = new_tensor(x, {B, M, N}), r = new_tensor(x, {B, N, N});
    kernels::qr(x.queue(), q, r, x.contiguous());
    y = joined({q, r});
  }
  // Walter and Lehmann 2018, "Algorithmic differentiation of linear algebra functions".
  return differentiable(y, "qr", {x}, [=, y = Saved(y)](const Tensor& dy) {
    const std::vector<Tensor> parts = taken(y, sizes), gradients = taken(dy, sizes);
    const Tensor &q = parts[0], &r = parts[1];
    const Tensor m = sub(matmul(r, t(gradients[1])), matmul(t(gradients[0]), q));
    const Tensor symmetric = add(tril(m), t(tril(m, -1)));
    const Tensor of_x = add(gradients[0], matmul(q, symmetric));
    return Grads{t(triangular_solve(r, t(of_x), /*upper=*/true))};
  });
}

/// solve() of batches: a [B, N, N], b [B, N, K].
Tensor solve_of_batch(const Tensor& a, const Tensor& b) {
  Tensor y = new_tensor(b, b.sizes());
  {
    const NoGrad no_grad;
    if (a.numel() > 0) kernels::solve(a.queue(), y, a.contiguous(), b.contiguous());
  }
  return differentiable(y, "solve", {a, b}, [a = Saved(a), y = Saved(y)](const Tensor& dy) {
    const Tensor db = solve(t(a), dy);
    return Grads{neg(matmul(db, t(y))), db};
  });
}

Tensor triangular_solve_of_batch(const Tensor& a, const Tensor& b, bool upper) {
  Tensor y = new_tensor(b, b.sizes());
  {
    const NoGrad no_grad;
    if (a.numel() > 0) kernels::triangular_solve(a.queue(), y, a.contiguous(), b.contiguous(), upper);
  }
  return differentiable(y, "triangular_solve", {a, b}, [=, a = Saved(a), y = Saved(y)](const Tensor& dy) {
    const Tensor db = triangular_solve(t(a), dy, !upper);
    const Tensor da = neg(matmul(db, t(y)));
    return Grads{upper ? triu(da) : tril(da), db};
  });
}

/// Runs a solver of batches after checks and broadcasting.
template <class Solver>
Tensor solved(const char* op, const Tensor& a, const Tensor& b, const Solver& solver) {
  check_square(op, a);
  WEFT_CHECK(b.defined() && b.dtype() == a.dtype() && b.device() == a.device() && b.dim() >= 1, op,
             ": expected b in a's dtype on a's device, got a ", a, " and b ", b);
  const Tensor columns = b.dim() == 1 ? b.unsqueeze(-1) : b;
  WEFT_CHECK(columns.size(-2) == a.size(-1), op, ": expected b [..., ", a.size(-1), ", K] for a ", a, ", got ", b);
  const Shape of_batch = broadcast_shapes(op, leading(a, {}), leading(columns, {}));
  const auto expanded = [&](const Tensor& x) {
    std::vector<int64_t> sizes(of_batch.begin(), of_batch.end());
    sizes.push_back(x.size(-2));
    sizes.push_back(x.size(-1));
    return x.expand(Shape(sizes));
  };
  const Tensor wide_a = expanded(a), wide_b = expanded(columns);
  const Tensor y = solver(batch(wide_a), batch(wide_b)).reshape(wide_b.sizes());
  return b.dim() == 1 ? y.squeeze(-1) : y;
}

/// The diagonal of u of P x = l u, and the determinant of P; no gradient.
std::pair<Tensor, Tensor> factors(const char* op, const Tensor& x) {
  check_square(op, x);
  check_not_empty(op, x);
  const NoGrad no_grad;
  const Tensor all = batch(x).contiguous(), lu = new_tensor(x, all.sizes()), parity = new_tensor(x, {all.size(0)});
  kernels::lu(x.queue(), lu, parity, all);
  return {diagonal(lu).reshape(leading(x, {x.size(-1)})), parity.reshape(leading(x, {}))};
}

}  // namespace

Svd svd(const Tensor& x) {
  const OpScope scope("svd");
  check_matrices("svd", x);
  check_not_empty("svd", x);
  const int64_t M = x.size(-2), N = x.size(-1), K = std::min(M, N);
  const std::vector<Tensor> parts = taken(svd_of_batch(batch(x)), {{M, K}, {K}, {K, N}});
  return {parts[0].reshape(leading(x, {M, K})), parts[1].reshape(leading(x, {K})),
          parts[2].reshape(leading(x, {K, N}))};
}

Tensor svdvals(const Tensor& x) { return svd(x).s; }

Eigh eigh(const Tensor& x) {
  const OpScope scope("eigh");
  check_square("eigh", x);
  check_not_empty("eigh", x);
  const int64_t N = x.size(-1);
  const std::vector<Tensor> parts = taken(eigh_of_batch(batch(x)), {{N}, {N, N}});
  return {parts[0].reshape(leading(x, {N})), parts[1].reshape(leading(x, {N, N}))};
}

Tensor eigvalsh(const Tensor& x) { return eigh(x).values; }

Qr qr(const Tensor& x) {
  const OpScope scope("qr");
  check_matrices("qr", x);
  check_not_empty("qr", x);
  const int64_t M = x.size(-2), N = x.size(-1), K = std::min(M, N);
  const std::vector<Tensor> parts = taken(qr_of_batch(batch(N > M ? x.slice(-1, 0, M) : x)), {{M, K}, {K, K}});
  const Tensor q = parts[0].reshape(leading(x, {M, K})), r = parts[1].reshape(leading(x, {K, K}));
  if (N <= M) return {q, r};
  return {q, concat({r, matmul(t(q), x.slice(-1, M, N - M))}, -1)};
}

Tensor cholesky(const Tensor& x) {
  const OpScope scope("cholesky");
  check_square("cholesky", x);
  check_not_empty("cholesky", x);
  const Tensor all = batch(x), l = new_tensor(x, all.sizes());
  {
    const NoGrad no_grad;
    kernels::cholesky(x.queue(), l, all.contiguous());
  }
  // Murray 2016, "Differentiation of the Cholesky decomposition".
  return differentiable(l, "cholesky", {all},
                        [l = Saved(l)](const Tensor& dl) {
                          const Tensor lower = l, product = tril(matmul(t(lower), dl));
                          const Tensor halved = sub(product, div(diag_embed(diagonal(product)), 2));
                          const Tensor left = triangular_solve(t(lower), halved, /*upper=*/true);
                          const Tensor both = triangular_solve(t(lower), t(left), /*upper=*/true);
                          return Grads{div(add(both, t(both)), 2)};
                        })
      .reshape(x.sizes());
}

Tensor solve(const Tensor& a, const Tensor& b) {
  const OpScope scope("solve");
  return solved("solve", a, b, solve_of_batch);
}

Tensor triangular_solve(const Tensor& a, const Tensor& b, bool upper) {
  const OpScope scope("triangular_solve");
  return solved("triangular_solve", a, b,
                [&](const Tensor& x, const Tensor& y) { return triangular_solve_of_batch(x, y, upper); });
}

Tensor inverse(const Tensor& x) {
  const OpScope scope("inverse");
  check_square("inverse", x);
  return solve(x, eye(x.size(-1), x.dtype(), x.device()));
}

namespace {

double epsilon_of(const Tensor& x) {
  return x.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                 : static_cast<double>(std::numeric_limits<float>::epsilon());
}

/// Whether a factor r [..., K, K] of a matrix of `size` rows or columns shows, within rounding, a rank below K.
bool is_deficient(const Tensor& r, int64_t size) {
  if (r.numel() == 0) return false;
  const NoGrad no_grad;
  const Tensor pivots = abs(diagonal(r));
  return static_cast<bool>(
      any(le(min(pivots, {-1}), mul(max(pivots, {-1}), epsilon_of(r) * static_cast<double>(size)))));
}

}  // namespace

Tensor lstsq(const Tensor& a, const Tensor& b) {
  const OpScope scope("lstsq");
  check_matrices("lstsq", a);
  WEFT_CHECK(
      b.defined() && b.dim() >= 2 && b.dtype() == a.dtype() && b.device() == a.device() && b.size(-2) == a.size(-2),
      "lstsq: expected b [..., ", a.size(-2), ", K] in a's dtype on a's device for a ", a, ", got ", b);
  const bool tall = a.size(-2) >= a.size(-1);
  const auto [q, r] = qr(tall ? a : t(a));
  if (is_deficient(r, std::max(a.size(-2), a.size(-1)))) return matmul(pinv(a), b);
  return tall ? triangular_solve(r, matmul(t(q), b), /*upper=*/true)
              : matmul(q, triangular_solve(t(r), b, /*upper=*/false));
}

Tensor pinv(const Tensor& x, std::optional<double> tolerance) {
  const OpScope scope("pinv");
  check_matrices("pinv", x);
  check_not_empty("pinv", x);
  const double share = tolerance ? *tolerance : epsilon_of(x) * static_cast<double>(std::max(x.size(-1), x.size(-2)));
  WEFT_CHECK(share >= 0, "pinv: expected a tolerance of at least 0, got ", share);
  Tensor y;
  {
    const NoGrad no_grad;
    const auto [u, s, vh] = svd(x);
    const Tensor counts = gt(s, mul(max(s, {-1}, true), share));
    const Tensor inverted = where(counts, reciprocal(where(counts, s, 1)), 0);
    y = matmul(mul(t(vh), inverted.unsqueeze(-2)), t(u));
  }
  // Golub and Pereyra 1973, "The differentiation of pseudo-inverses".
  return differentiable(y, "pinv", {x}, [x = Saved(x), y = Saved(y)](const Tensor& dy) {
    const Tensor a = x, p = y;
    const Tensor left = matmul(t(p), matmul(dy, t(p)));
    const Tensor rows = matmul(t(dy), matmul(p, t(p))), columns = matmul(matmul(t(p), p), t(dy));
    return Grads{sub(add(sub(rows, matmul(a, matmul(p, rows))), sub(columns, matmul(matmul(columns, p), a))), left)};
  });
}

namespace {

/// The cofactors of x [..., N, N], the gradient of det(x) where x is singular: det(u vh) u diag(p) vh, where p_i is the
/// product of all singular values but s_i. No gradient.
Tensor cofactors(const Tensor& x) {
  const Svd f = svd(x);
  const int64_t n = f.s.size(-1);
  const Tensor others = where(eye(n, DType::boolean, x.device()), 1.0, f.s.unsqueeze(-2));
  const Tensor turn = mul(det(f.u), det(f.vh)).unsqueeze(-1).unsqueeze(-1);
  return mul(turn, matmul(mul(f.u, prod(others, {-1}).unsqueeze(-2)), f.vh));
}

}  // namespace

Tensor det(const Tensor& x) {
  const OpScope scope("det");
  const auto [pivots, parity] = factors("det", x);
  Tensor y;
  {
    const NoGrad no_grad;
    y = mul(prod(pivots, {-1}), parity);
  }
  return differentiable(y, "det", {x}, [x = Saved(x), y = Saved(y)](const Tensor& dy) {
    const bool by_inverse = grad_enabled() || !any(eq(y, 0)).item<bool>();
    if (!by_inverse) return Grads{mul(dy.unsqueeze(-1).unsqueeze(-1), cofactors(x))};
    return Grads{mul(mul(dy, y).unsqueeze(-1).unsqueeze(-1), t(inverse(x)))};
  });
}

SlogDet slogdet(const Tensor& x) {
  const OpScope scope("slogdet");
  const auto [pivots, parity] = factors("slogdet", x);
  SlogDet result;
  {
    const NoGrad no_grad;
    result = {mul(prod(sign(pivots), {-1}), parity), sum(log(abs(pivots)), {-1})};
  }
  result.logabsdet = differentiable(result.logabsdet, "slogdet", {x}, [x = Saved(x)](const Tensor& dy) {
    return Grads{mul(dy.unsqueeze(-1).unsqueeze(-1), t(inverse(x)))};
  });
  return result;
}

Tensor matrix_norm(const Tensor& x, MatrixNorm order, bool keep_dims) {
  const OpScope scope("matrix_norm");
  check_matrices("matrix_norm", x);
  const auto of_values = [&](const Tensor& y) { return keep_dims ? y.unsqueeze(-1).unsqueeze(-1) : y; };
  const auto largest_sum = [&](int64_t summed, int64_t other) {
    const Tensor y = max(sum(abs(x), {summed}, true), {other}, true);
    return keep_dims ? y : y.squeeze(-1).squeeze(-1);
  };
  switch (order) {
    case MatrixNorm::nuclear:
      return of_values(sum(svdvals(x), {-1}));
    case MatrixNorm::spectral:
      return of_values(max(svdvals(x), {-1}));
    case MatrixNorm::columns:
      return largest_sum(-2, -1);
    case MatrixNorm::rows:
      return largest_sum(-1, -2);
    default:
      return norm(x, {-2, -1}, keep_dims);
  }
}

Tensor vector_norm(const Tensor& x, double order, const std::vector<int64_t>& dims, bool keep_dims) {
  const OpScope scope("vector_norm");
  WEFT_CHECK(x.defined() && x.is_floating() && !std::isnan(order), "vector_norm: expected a floating tensor and an ",
             "order that is a number, got ", x, " and ", order);
  if (order == 2) return norm(x, dims, keep_dims);
  if (std::isinf(order)) return order > 0 ? max(abs(x), dims, keep_dims) : min(abs(x), dims, keep_dims);
  if (order == 0) return sum(ne(x, 0).to(x.dtype()), dims, keep_dims);
  if (order == 1) return sum(abs(x), dims, keep_dims);
  return pow(sum(pow(abs(x), order), dims, keep_dims), 1 / order);
}

}  // namespace weft
