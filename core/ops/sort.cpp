// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sort.h"

#include <algorithm>
#include <cmath>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/index.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/index.h"
#include "kernels/contracts/sort.h"

namespace weft {
namespace {

/// dy's elements where they stood in a tensor of these sizes, zero elsewhere. `indices`: along the last dimension, each
/// position of a row at most once.
Tensor put_back(const Tensor& dy, const Tensor& indices, const Shape& sizes) {
  const Tensor dx = Tensor::zeros(sizes, dy.dtype(), dy.device());
  if (dy.numel() == 0) return differentiable(dx, "sort", {dy}, [](const Tensor&) { return Grads(1); });
  const int64_t n = sizes[sizes.rank() - 1], rows = sizes.numel() / n;
  const Tensor begins = Tensor::arange(rows, DType::i64, dy.device(), 0, static_cast<double>(n)).unsqueeze(1);
  const Tensor positions = add(indices.reshape({rows, indices.size(-1)}), begins).flatten();
  kernels::index_put(dx.queue(), dx.flatten(), dy.contiguous().flatten(), positions);
  return differentiable(dx, "sort", {dy},
                        [indices = Saved(indices)](const Tensor& ddx) { return Grads{gather(ddx, -1, indices)}; });
}

/// The first k of the order; -1: all.
Sorted first(const char* op, const Tensor& x, int64_t k, int64_t dim, bool descending) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, op, ": expected a tensor of at least one dimension, got ", x);
  const OpScope scope(op);
  const int at = wrap_dim(op, dim, x.dim());
  WEFT_CHECK(k >= -1 && k <= x.size(at), op, ": expected k from 0 to ", x.size(at), " for dimension ", dim, " of ", x,
             ", got ", k);
  Sorted sorted;
  Shape sizes;  // x's, with the dimension at the end
  {
    const NoGrad no_grad;
    const Tensor rows = x.transpose(at, -1).contiguous();
    sizes = rows.sizes();
    Shape kept = sizes;
    kept[x.dim() - 1] = k < 0 ? x.size(at) : k;
    sorted = {Tensor::empty(kept, x.dtype(), x.device()), Tensor::empty(kept, DType::i64, x.device())};
    kernels::sort(x.queue(), sorted.values, sorted.indices, rows, descending);
  }
  const Tensor indices = sorted.indices;
  sorted = {sorted.values.transpose(at, -1), sorted.indices.transpose(at, -1)};
  if (!wants_gradient(x)) return sorted;
  sorted.values = differentiable(sorted.values, op, {x}, [=, indices = Saved(indices)](const Tensor& dy) {
    return Grads{put_back(dy.transpose(at, -1), indices, sizes).transpose(at, -1)};
  });
  return sorted;
}

/// cummax() and cummin().
Sorted running(const char* op, const Tensor& x, Integer dim, bool largest) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, op, ": expected a tensor of at least one dimension, got ", x);
  const OpScope scope(op);
  const int at = wrap_dim(op, dim, x.dim());
  const int64_t n = x.size(at);
  Shape line;
  for (int d = 0; d < x.dim(); ++d) line.push_back(d == at ? n : 1);
  Tensor places = Tensor::arange(n, DType::i64, x.device()).reshape(line).expand(x.sizes());
  {
    const NoGrad no_grad;
    Tensor best = x.dtype() == DType::boolean ? x.to(DType::u8) : x.detach();
    for (int64_t step = 1; step < n; step *= 2) {  // best[i]: of up to 2 step elements that end with x[i]
      const Tensor before = best.slice(at, 0, n - step), own = best.slice(at, step, n - step);
      Tensor keeps = largest ? gt(before, own) : lt(before, own);
      if (x.is_floating()) keeps = logical_or(keeps, logical_and(isnan(before), logical_not(isnan(own))));
      const auto joined = [&](const Tensor& all) {
        return concat({all.slice(at, 0, step), where(keeps, all.slice(at, 0, n - step), all.slice(at, step, n - step))},
                      at);
      };
      best = joined(best);
      places = joined(places);
    }
  }
  return {gather(x, at, places), places.contiguous()};
}

}  // namespace

Sorted sort(const Tensor& x, Integer dim, bool descending) { return first("sort", x, -1, dim, descending); }

Tensor argsort(const Tensor& x, Integer dim, bool descending) {
  const NoGrad no_grad;
  return first("argsort", x, -1, dim, descending).indices;
}

Sorted topk(const Tensor& x, Integer k, Integer dim, bool largest) {
  WEFT_CHECK(k >= 0, "topk: expected k of at least 0, got ", k);
  return first("topk", x, k, dim, largest);
}

Sorted cummax(const Tensor& x, Integer dim) { return running("cummax", x, dim, /*largest=*/true); }
Sorted cummin(const Tensor& x, Integer dim) { return running("cummin", x, dim, /*largest=*/false); }

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
  constexpr const char* kOp = "searchsorted";
  WEFT_CHECK(sorted.defined() && values.defined() && sorted.dim() >= 1 && sorted.dtype() == values.dtype() &&
                 sorted.device() == values.device(),
             kOp, ": expected sorted rows [..., n] and values of their dtype on their device, got ", sorted, " and ",
             values);
  const int64_t n = sorted.size(-1);
  bool fits = sorted.dim() == 1 || sorted.dim() == values.dim();
  for (int d = 0; fits && d + 1 < sorted.dim(); ++d) fits = sorted.size(d) == values.size(d);
  WEFT_CHECK(fits, kOp, ": expected one row, or a row for each row of the values, got ", sorted, " and ", values);
  const OpScope scope(kOp);
  const NoGrad no_grad;
  const Tensor y = Tensor::empty(values.sizes(), DType::i64, values.device());
  if (y.numel() == 0) return y;
  const int64_t m = sorted.dim() == 1 ? values.numel() : values.size(-1), rows = values.numel() / m;
  kernels::search_sorted(y.queue(), y.reshape({rows, m}),
                         sorted.contiguous().reshape({sorted.dim() == 1 ? 1 : rows, n}),
                         values.contiguous().reshape({rows, m}), right);
  return y;
}

Tensor isin(const Tensor& x, const Tensor& values) {
  const OpScope scope("isin");
  WEFT_CHECK(x.defined() && values.defined() && x.dtype() == values.dtype() && x.device() == values.device(),
             "isin: expected values of x's dtype on its device, got ", x, " and ", values);
  const NoGrad no_grad;
  const int64_t n = values.numel();
  if (n == 0) return Tensor::zeros(x.sizes(), DType::boolean, x.device());
  const Tensor sorted = sort(values.flatten()).values;
  const Tensor places = clamp(searchsorted(sorted, x), 0, n - 1);
  return eq(index_select(sorted, 0, places.flatten()).reshape(x.sizes()), x);
}

Unique unique(const Tensor& x) {
  WEFT_CHECK(x.defined(), "unique: expected a tensor, got none");
  const OpScope scope("unique");
  const NoGrad no_grad;
  const int64_t n = x.numel();
  if (n == 0)
    return {x.detach().flatten(), Tensor::zeros(x.sizes(), DType::i64, x.device()),
            Tensor::zeros({0}, DType::i64, x.device())};
  const Sorted sorted = sort(x.reshape({n}));
  const Tensor begins = concat({Tensor::ones({1}, DType::boolean, x.device()),
                                ne(sorted.values.slice(0, 1, n - 1), sorted.values.slice(0, 0, n - 1))});
  const Tensor at = nonzero(begins).flatten();
  const Tensor ends = concat({at.slice(0, 1, at.size(0) - 1), Tensor::full({1}, n, DType::i64, x.device())});
  const Tensor group = sub(cumsum(begins, 0), 1);
  return {index_select(sorted.values, 0, at),
          scatter(Tensor::zeros({n}, DType::i64, x.device()), 0, sorted.indices, group).reshape(x.sizes()),
          sub(ends, at)};
}

Tensor bincount(const Tensor& x, const Tensor& weights, Integer least) {
  WEFT_CHECK(x.defined() && x.dim() == 1 && !x.is_floating() && x.dtype() != DType::boolean,
             "bincount: expected integers of rank 1, got ", x);
  WEFT_CHECK(least >= 0, "bincount: expected a least length of at least 0, got ", int64_t{least});
  WEFT_CHECK(
      !weights.defined() || (weights.is_floating() && weights.sizes() == x.sizes() && weights.device() == x.device()),
      "bincount: expected floating weights of the sizes ", x.sizes(), " on ", x.device(), ", got ", weights);
  const OpScope scope("bincount");
  const NoGrad no_grad;
  const Tensor index = x.to(DType::i64);
  const int64_t most = x.numel() == 0 ? -1 : max(index).item<int64_t>();
  WEFT_CHECK(most < int64_t{1} << 40, "bincount: expected elements below 2^40, got ", most);
  WEFT_CHECK(x.numel() == 0 || min(index).item<int64_t>() >= 0, "bincount: expected no negative element, got ",
             min(index).item<int64_t>());
  // Counts are exact in f64 as far as memory reaches.
  const Tensor each = weights.defined() ? weights.detach() : Tensor::ones({x.numel()}, DType::f64, x.device());
  const Tensor bins = Tensor::zeros({std::max<int64_t>(most + 1, least)}, each.dtype(), x.device());
  const Tensor sums = x.numel() == 0 ? bins : scatter_add(bins, 0, index, each);
  return weights.defined() ? sums : sums.to(DType::i64);
}

namespace {

void check_numbers(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.is_floating() && x.numel() > 0, op, ": expected a floating tensor with elements, got ",
             x);
}

}  // namespace

Sorted median(const Tensor& x, Integer dim, bool keep_dims) {
  const OpScope scope("median");
  check_numbers("median", x);
  const int at = wrap_dim("median", dim, x.dim());
  const Sorted sorted = sort(x, at);
  const int64_t n = x.size(at);
  // NaN sorts to the end: there the last one is the median.
  const Tensor has_nan = isnan(sorted.values.slice(at, n - 1, 1).detach());
  const Tensor middle = where(has_nan, n - 1, Tensor::full(has_nan.sizes(), (n - 1) / 2, DType::i64, x.device()));
  const Tensor values = gather(sorted.values, at, middle), indices = gather(sorted.indices, at, middle);
  return keep_dims ? Sorted{values, indices} : Sorted{values.squeeze(at), indices.squeeze(at)};
}

Tensor median(const Tensor& x) {
  check_numbers("median", x);
  return median(x.reshape({x.numel()}), 0).values;
}

Tensor quantile(const Tensor& x, double q, Integer dim, bool keep_dims) {
  const OpScope scope("quantile");
  check_numbers("quantile", x);
  WEFT_CHECK(q >= 0 && q <= 1, "quantile: expected q in [0, 1], got ", q);
  const int at = wrap_dim("quantile", dim, x.dim());
  const Tensor sorted = sort(x, at).values;
  const int64_t n = x.size(at);
  const double place = q * static_cast<double>(n - 1);
  const auto low = static_cast<int64_t>(place);
  const Tensor below = sorted.slice(at, low, 1), above = sorted.slice(at, std::min(low + 1, n - 1), 1);
  const Tensor last = sorted.slice(at, n - 1, 1);
  const double part = place - static_cast<double>(low);
  const Tensor between = part == 0 ? below : add(below, affine(sub(above, below), part, 0));
  const Tensor y = where(isnan(last.detach()), last, between);
  return keep_dims ? y : y.squeeze(at);
}

Tensor quantile(const Tensor& x, double q) {
  check_numbers("quantile", x);
  return quantile(x.reshape({x.numel()}), q, 0);
}

Tensor histogram(const Tensor& x, Integer bins, double low, double high) {
  const OpScope scope("histogram");
  WEFT_CHECK(x.defined() && x.is_floating() && bins >= 1 && low < high && std::isfinite(high - low),
             "histogram: expected a floating tensor, at least one bin and finite low < high, got ", x, ", ", bins,
             " bins, ", low, " and ", high);
  const NoGrad no_grad;
  const Tensor flat = x.reshape({x.numel()}).to(DType::f64);
  const Tensor edges = linspace(low, high, bins + 1, DType::f64, x.device());
  const Tensor at =
      minimum(sub(searchsorted(edges, flat, /*right=*/true), 1), Tensor::full({}, bins - 1, DType::i64, x.device()));
  return bincount(masked_select(at, logical_and(ge(flat, low), le(flat, high))), {}, bins);
}

}  // namespace weft
