// SPDX-License-Identifier: Apache-2.0
#include "core/ops/compare.h"

#include <cmath>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/broadcast.h"
#include "core/ops/gather.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/promotion.h"
#include "core/trace.h"
#include "kernels/contracts/binary.h"
#include "kernels/contracts/index.h"

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

// The number takes the tensor's dtype where that is floating. With an integer tensor a whole number is an i64. In
// f64 the largest are rounded, but none equals a fraction, NaN or infinity; infinity also replaces numbers beyond
// i64.
Tensor compared(const char* op, kernels::Compare f, const Tensor& a, Number b) {
  WEFT_CHECK(a.defined(), op, ": expected a tensor, got none");
  const auto with = [&](Number number, DType dtype) {
    return compared(op, f, a, Tensor::full({}, number, dtype, a.device()));
  };
  if (a.is_floating()) return with(b, a.dtype());
  const double value = b.value();
  if (b.is_whole() || (value >= -0x1p63 && value < 0x1p63 && value == std::floor(value)))
    return with(static_cast<int64_t>(b), DType::i64);
  return with(std::abs(value) >= 0x1p63 ? std::copysign(INFINITY, value) : value, DType::f64);
}

}  // namespace

#define WEFT_LOGICAL(name, ...) \
  Tensor name(const Tensor& a, const Tensor& b) { return compared(#name, kernels::Compare::name, a, b); }
#define WEFT_COMPARISON(name, ...) \
  WEFT_LOGICAL(name)               \
  Tensor name(const Tensor& a, Number b) { return compared(#name, kernels::Compare::name, a, b); }
WEFT_COMPARE_TABLE(WEFT_COMPARISON, WEFT_LOGICAL)
#undef WEFT_COMPARISON
#undef WEFT_LOGICAL

Tensor isnan(const Tensor& x) { return compared("isnan", kernels::Compare::ne, x, x); }

Tensor isfinite(const Tensor& x) {
  WEFT_CHECK(x.defined(), "isfinite: expected a tensor, got none");
  if (!x.is_floating()) return compared("isfinite", kernels::Compare::eq, x, x);
  const NoGrad no_grad;  // x 0 is NaN for NaN and infinities only
  return compared("isfinite", kernels::Compare::eq, affine(x, 0, 0), 0);
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

namespace {

/// The number as a tensor that where() takes beside x.
Tensor beside(const Tensor& x, Number number) {
  WEFT_CHECK(x.defined(), "where: expected a tensor, got none");
  const bool is_truth = number.is_whole() && (number.value() == 0 || number.value() == 1);
  const bool stays = x.dtype() == DType::boolean ? is_truth : number.is_whole();
  const DType dtype = stays ? x.dtype() : promote(x.dtype(), number);
  check_holds("where", dtype, number);
  return Tensor::full({}, number, dtype, x.device());
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, Number b) { return where(condition, a, beside(a, b)); }
Tensor where(const Tensor& condition, Number a, const Tensor& b) { return where(condition, beside(b, a), b); }

Tensor masked_fill(const Tensor& x, const Tensor& mask, Number value) {
  WEFT_CHECK(x.defined(), "masked_fill: expected a tensor, got none");
  check_holds("masked_fill", x.dtype(), value);
  return where(mask, Tensor::full({}, value, x.dtype(), x.device()), x);
}

Tensor any(const Tensor& x, const std::vector<int64_t>& dims, bool keep_dims) {
  const OpScope scope("any");
  return ne(sum(ne(x, 0), dims, keep_dims), 0);
}

Tensor all(const Tensor& x, const std::vector<int64_t>& dims, bool keep_dims) {
  const OpScope scope("all");
  return eq(sum(eq(x, 0), dims, keep_dims), 0);
}

Tensor nonzero(const Tensor& x) {
  WEFT_CHECK(x.defined(), "nonzero: expected a tensor, got none");
  const OpScope scope("nonzero");
  const NoGrad no_grad;
  const Tensor found = (x.dtype() == DType::boolean ? x : ne(x, 0)).contiguous();
  const int64_t n = found.numel();
  if (n == 0) return Tensor::empty({0, x.dim()}, DType::i64, x.device());
  const Tensor ends = cumsum(found.reshape({n}), 0);
  const auto count = ends.select(0, n - 1).item<int64_t>();
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

Tensor tril(const Tensor& x, Integer diagonal) { return masked_fill(x, gt(diagonals("tril", x), diagonal), 0); }

Tensor triu(const Tensor& x, Integer diagonal) { return masked_fill(x, lt(diagonals("triu", x), diagonal), 0); }

Tensor logical_not(const Tensor& x) { return compared("logical_not", kernels::Compare::eq, x, 0); }

Tensor logical_xor(const Tensor& a, const Tensor& b) {
  const OpScope scope("logical_xor");
  return ne(ne(a, 0), ne(b, 0));
}

namespace {

void check_bools(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.defined() && b.defined() && a.dtype() == DType::boolean && b.dtype() == DType::boolean, "operator", op,
             ": expected two bool tensors, got ", a, " and ", b, ". logical_and and logical_or take other dtypes");
}

}  // namespace

Tensor operator&(const Tensor& a, const Tensor& b) {
  check_bools("&", a, b);
  return logical_and(a, b);
}

Tensor operator|(const Tensor& a, const Tensor& b) {
  check_bools("|", a, b);
  return logical_or(a, b);
}

Tensor isinf(const Tensor& x) {
  WEFT_CHECK(x.defined(), "isinf: expected a tensor, got none");
  const NoGrad no_grad;
  return x.is_floating() ? compared("isinf", kernels::Compare::eq, abs(x), INFINITY) : ne(x, x);
}

}  // namespace weft
