// SPDX-License-Identifier: Apache-2.0
#include "core/ops/counts.h"

#include <algorithm>

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {

Tensor count_nonzero(const Tensor& x, const std::vector<int64_t>& dims) {
  const OpScope scope("count_nonzero");
  WEFT_CHECK(x.defined(), "count_nonzero: expected a tensor, got none");
  return sum(ne(x, 0), dims);
}

namespace {

Tensor without_nan(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.is_floating(), op, ": expected a floating tensor, got ", x);
  return where(isnan(x.detach()), 0, x);
}

}  // namespace

Tensor nansum(const Tensor& x, const std::vector<int64_t>& dims, bool keep_dims) {
  const OpScope scope("nansum");
  return sum(without_nan("nansum", x), dims, keep_dims);
}

Tensor nanmean(const Tensor& x, const std::vector<int64_t>& dims, bool keep_dims) {
  const OpScope scope("nanmean");
  const Tensor whole = sum(without_nan("nanmean", x), dims, keep_dims);
  return div(whole, sum(logical_not(isnan(x.detach())), dims, keep_dims).to(whole.dtype()));
}

Tensor cov(const Tensor& x, int64_t correction) {
  const OpScope scope("cov");
  WEFT_CHECK(x.defined() && x.dim() == 2 && x.is_floating() && x.size(1) > correction,
             "cov: expected floating [V, N], N > ", correction, ", got ", x);
  const Tensor centred = sub(x, mean(x, {1}, true));
  return matmul(centred, div(centred, static_cast<double>(x.size(1) - correction)).transpose(0, 1));
}

Tensor corrcoef(const Tensor& x) {
  const OpScope scope("corrcoef");
  const Tensor c = cov(x);
  const Tensor deviations = sqrt(diagonal(c));
  return clamp(div(div(c, deviations.unsqueeze(1)), deviations), -1, 1);
}

namespace {

/// y along dim without its last element (0) or without its first (1).
Tensor without_end(const Tensor& y, int64_t first, int dim) {
  return y.slice(dim, std::min(first, y.size(dim)), std::max<int64_t>(y.size(dim) - 1, 0));
}

}  // namespace

Tensor trapezoid(const Tensor& y, double step, Integer dim) {
  const OpScope scope("trapezoid");
  WEFT_CHECK(y.defined() && y.is_floating() && y.dim() >= 1,
             "trapezoid: expected a floating tensor with dimensions, got ", y);
  const int at = wrap_dim("trapezoid", dim, y.dim());
  return mul(sum(add(without_end(y, 0, at), without_end(y, 1, at)), {at}), step / 2);
}

Tensor trapezoid(const Tensor& y, const Tensor& x, Integer dim) {
  const OpScope scope("trapezoid");
  WEFT_CHECK(y.defined() && y.is_floating() && y.dim() >= 1,
             "trapezoid: expected a floating tensor with dimensions, got ", y);
  const int at = wrap_dim("trapezoid", dim, y.dim());
  WEFT_CHECK(x.defined() && (x.dim() == 1 || x.dim() == y.dim()),
             "trapezoid: expected points of y's sizes or a row of them, got ", x, " for ", y);
  Tensor points = x;
  if (x.dim() == 1)
    for (int d = at + 1; d < y.dim(); ++d) points = points.unsqueeze(-1);
  const int along = x.dim() == 1 ? 0 : at;
  WEFT_CHECK(points.size(along) == y.size(at), "trapezoid: expected a point for each of ", y.size(at), " values, got ",
             x);
  const Tensor widths = sub(without_end(points, 1, along), without_end(points, 0, along));
  return mul(sum(mul(add(without_end(y, 0, at), without_end(y, 1, at)), widths), {at}), 0.5);
}

}  // namespace weft
