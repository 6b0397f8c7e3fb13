// SPDX-License-Identifier: Apache-2.0
#include "core/ops/compare.h"

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/broadcast.h"
#include "core/ops/gather.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/binary.h"
#include "kernels/index.h"

namespace weft {
namespace {

Tensor compared(const char* op, kernels::Compare f, const Tensor& left, const Tensor& right) {
  const OpScope scope(op);
  const NoGrad no_grad;
  const auto [a, b, sizes] = operands(op, left, right);
  Tensor y = Tensor::empty(sizes, DType::boolean, a.device());
  kernels::compare(y.queue(), f, y, broadcast_view(a, sizes), broadcast_view(b, sizes));
  return y;
}

// The number takes the tensor's dtype when it is floating; an integer meets it in f64, exactly up to 2^53.
Tensor compared(const char* op, kernels::Compare f, const Tensor& a, double b) {
  WEFT_CHECK(a.defined(), op, ": expected a tensor, got none");
  return compared(op, f, a, Tensor::full({}, b, a.is_floating() ? a.dtype() : DType::f64, a.device()));
}

}  // namespace

#define WEFT_LOGICAL(name, ...) \
  Tensor name(const Tensor& a, const Tensor& b) { return compared(#name, kernels::Compare::name, a, b); }
#define WEFT_COMPARISON(name, ...) \
  WEFT_LOGICAL(name)               \
  Tensor name(const Tensor& a, double b) { return compared(#name, kernels::Compare::name, a, b); }
WEFT_COMPARE_TABLE(WEFT_COMPARISON, WEFT_LOGICAL)
#undef WEFT_COMPARISON
#undef WEFT_LOGICAL

Tensor isnan(const Tensor& x) { return compared("isnan", kernels::Compare::ne, x, x); }

Tensor isfinite(const Tensor& x) {
  WEFT_CHECK(x.defined(), "isfinite: expected a tensor, got none");
  if (!x.is_floating()) return compared("isfinite", kernels::Compare::eq, x, x);
  const NoGrad no_grad;  // x 0 is NaN for NaN and infinities only
  return compared("isfinite", kernels::Compare::eq, affine(x, 0, 0), 0.0);
}

Tensor where(const Tensor& condition, const Tensor& left, const Tensor& right) {
  const OpScope scope("where");
  WEFT_CHECK(condition.defined() && condition.dtype() == DType::boolean, "where: expected a bool condition, got ",
             condition);
  const auto [a, b, both] = operands("where", left, right);
  WEFT_CHECK(condition.device() == a.device(), "where: expected tensors on one device, got ", condition, " and ", a);
  const Shape sizes = broadcast_shapes("where", condition.sizes(), both);
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::where(y.queue(), y, broadcast_view(condition, sizes), broadcast_view(a, sizes), broadcast_view(b, sizes));
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  return differentiable(
      y, "where", {a, b},
      [da, db, chosen = Saved(condition), a_sizes = a.sizes(), b_sizes = b.sizes()](const Tensor& dy) {
        const Tensor zero = Tensor::zeros({}, dy.dtype(), dy.device());
        Grads grads(2);
        if (da) grads[0] = reduce_to(where(chosen, dy, zero), a_sizes);
        if (db) grads[1] = reduce_to(where(chosen, zero, dy), b_sizes);
        return grads;
      });
}

Tensor where(const Tensor& condition, const Tensor& a, double b) {
  WEFT_CHECK(a.defined(), "where: expected a tensor, got none");
  return where(condition, a, Tensor::full({}, b, a.dtype(), a.device()));
}

Tensor where(const Tensor& condition, double a, const Tensor& b) {
  WEFT_CHECK(b.defined(), "where: expected a tensor, got none");
  return where(condition, Tensor::full({}, a, b.dtype(), b.device()), b);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) { return where(mask, value, x); }

Tensor nonzero(const Tensor& x) {
  WEFT_CHECK(x.defined(), "nonzero: expected a tensor, got none");
  const OpScope scope("nonzero");
  const NoGrad no_grad;
  const Tensor found = (x.dtype() == DType::boolean ? x : ne(x, 0.0)).contiguous();
  const int64_t n = found.numel();
  if (n == 0) return Tensor::empty({0, x.dim()}, DType::i64, x.device());
  const Tensor ends = cumsum(found.reshape({n}), 0);
  const auto count = static_cast<int64_t>(ends.select(0, n - 1).item());
  const Tensor y = Tensor::empty({count, x.dim()}, DType::i64, x.device());
  if (y.numel() > 0) kernels::nonzero(y.queue(), y, found, ends);
  return y;
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  WEFT_CHECK(x.defined() && mask.defined() && mask.dtype() == DType::boolean && mask.device() == x.device(),
             "masked_select: expected a tensor and a bool mask on its device, got ", x, " and ", mask);
  const Shape sizes = broadcast_shapes("masked_select", x.sizes(), mask.sizes());
  const Tensor at = nonzero(mask.expand(sizes).reshape({sizes.numel()}));
  return index_select(x.expand(sizes).reshape({sizes.numel()}), 0, at.reshape({at.size(0)}));
}

namespace {

/// Column minus row of each element of the last two dimensions.
Tensor diagonals(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.dim() >= 2, op, ": expected a matrix [..., R, C], got ", x);
  const Tensor rows = Tensor::arange(x.size(-2), DType::i64, x.device());
  return sub(Tensor::arange(x.size(-1), DType::i64, x.device()), rows.unsqueeze(1));
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) {
  return where(le(diagonals("tril", x), static_cast<double>(diagonal)), x, 0.0);
}

Tensor triu(const Tensor& x, int64_t diagonal) {
  return where(ge(diagonals("triu", x), static_cast<double>(diagonal)), x, 0.0);
}

}  // namespace weft
