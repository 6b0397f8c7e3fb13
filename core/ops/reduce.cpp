// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include <algorithm>
#include <cmath>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/arithmetic.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/cumsum.h"
#include "kernels/contracts/reduce.h"

namespace weft {
namespace {

/// The dimensions that a reduction runs over, and what is left.
struct Reduced {
  Shape kept;     ///< x's sizes with 1 in the reduced dimensions
  Shape dropped;  ///< without them
  int64_t count;  ///< elements per result
};

/// `dims` empty means all. Errors: a dimension out of range or named twice.
Reduced reduced(const char* op, const Tensor& x, const std::vector<int64_t>& dims) {
  uint32_t over = dims.empty() ? ~0u : 0u;
  for (const int64_t dim : dims) {
    const uint32_t bit = 1u << wrap_dim(op, dim, std::max(x.dim(), 1));  // 0 and -1 of one number, too
    WEFT_CHECK(!(over & bit), op, ": dimension ", dim, " is named twice");
    over |= bit;
  }
  Reduced result{x.sizes(), {}, 1};
  for (int d = 0; d < x.dim(); ++d) {
    if (over >> d & 1) {
      result.count *= x.size(d);
      result.kept[d] = 1;
    } else {
      result.dropped.push_back(x.size(d));
    }
  }
  return result;
}

/// Runs the kernel; the result has sizes `kept`.
Tensor reduce(kernels::Reduce f, const Tensor& x, const Reduced& to) {
  Tensor y = Tensor::empty(to.kept, x.dtype(), x.device());
  kernels::reduce(y.queue(), f, y, x);
  return y;
}

/// The reduced dimensions go, or stay with size 1.
Tensor result_of(const Tensor& kept, const Reduced& to, bool keep_dims) {
  return keep_dims || to.dropped.rank() == kept.dim() ? kept : kept.reshape(to.dropped);
}

Tensor extremum(const char* op, kernels::Reduce f, const Tensor& input, const std::vector<int64_t>& dims,
                bool keep_dims) {
  WEFT_CHECK(input.defined(), op, ": expected a tensor, got none");
  const OpScope scope(op);
  const bool small = input.dtype() == DType::boolean || input.dtype() == DType::u8;
  const Tensor x = small ? input.to(DType::i64) : input;
  const Reduced to = reduced(op, x, dims);
  WEFT_CHECK(to.count > 0, op, ": nothing to choose from in ", x);
  const Tensor kept = reduce(f, x, to);
  const Tensor y = result_of(kept, to, keep_dims);
  if (!wants_gradient(x)) return y;
  return differentiable(y, op, {x}, [x = Saved(x), kept = Saved(kept, y)](const Tensor& dy) {
    const Tensor chosen = eq(x, kept).to(dy.dtype());
    const Tensor count = reduce(kernels::Reduce::sum, chosen, {kept.sizes(), {}, 1});
    return Grads{mul(chosen, div(dy.reshape(kept.sizes()), count))};
  });
}

/// The variance in f32 (f64 for f64). The mean of x rounds at the numbers' size, the mean of the distances from it at
/// theirs.
Tensor wide_var(const char* op, const Tensor& x, const VarOptions& options) {
  const int64_t count = reduced(op, x, options.dims).count;
  const auto centred = [&](const Tensor& t) { return sub(t, mean(t, options.dims, /*keep_dims=*/true)); };
  const Tensor squares = square(centred(centred(size_of(x.dtype()) == 2 ? x.to(DType::f32) : x)));
  const auto divisor = static_cast<double>(std::max<int64_t>(count - options.correction, 0));
  return affine(sum(squares, options.dims, options.keep_dims), 1 / divisor, 0);
}

/// For each factor the product of the others, by ops: a product of the factors before it and a product of the later
/// ones.
Tensor product_of_others(const Tensor& x, const Reduced& to) {
  if (x.numel() == 0) return x;
  Shape order;  // the dimensions that stay, then the reduced ones
  for (const bool reduces : {false, true})
    for (int d = 0; d < x.dim(); ++d)
      if ((to.kept[d] == 1 && x.size(d) != 1) == reduces) order.push_back(d);
  const Tensor turned = x.permute(order), rows = turned.reshape({-1, to.count});
  const Tensor one = Tensor::ones({rows.size(0), 1}, x.dtype(), x.device());
  std::vector<Tensor> before{one}, after{one};
  for (int64_t i = 0; i + 1 < to.count; ++i) {
    before.push_back(mul(before.back(), rows.slice(1, i, 1)));
    after.push_back(mul(after.back(), rows.slice(1, to.count - 1 - i, 1)));
  }
  std::reverse(after.begin(), after.end());
  Shape back = order;
  for (int d = 0; d < order.rank(); ++d) back[static_cast<int>(order[d])] = d;
  return mul(concat(before, 1), concat(after, 1)).reshape(turned.sizes()).permute(back);
}

Tensor scan(const Tensor& x, int dim, bool reverse) {
  Tensor y;
  {
    const NoGrad no_grad;
    const Tensor rows = x.transpose(dim, -1).contiguous();
    y = Tensor::empty(rows.sizes(), x.is_floating() ? x.dtype() : DType::i64, x.device());
    kernels::cumsum(y.queue(), y, rows, reverse);
    y = y.transpose(dim, -1);
  }
  // x[i] is a term of y[i], y[i + 1], …
  return differentiable(y, "cumsum", {x}, [=](const Tensor& dy) { return Grads{scan(dy, dim, !reverse)}; });
}

}  // namespace

Tensor sum(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  WEFT_CHECK(input.defined(), "sum: expected a tensor, got none");
  const OpScope scope("sum");
  const Tensor x = input.is_floating() ? autocast_full(input) : input.to(DType::i64);
  const Reduced to = reduced("sum", x, dims);
  const Tensor kept = reduce(kernels::Reduce::sum, x, to);
  const Tensor y = result_of(kept, to, keep_dims);
  return differentiable(y, "sum", {x}, [kept_sizes = to.kept, sizes = x.sizes()](const Tensor& dy) {
    return Grads{dy.reshape(kept_sizes).expand(sizes)};
  });
}

Tensor prod(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  WEFT_CHECK(input.defined(), "prod: expected a tensor, got none");
  const OpScope scope("prod");
  const Tensor x = input.is_floating() ? autocast_full(input) : input.to(DType::i64);
  const Reduced to = reduced("prod", x, dims);
  const Tensor kept = reduce(kernels::Reduce::prod, x, to);
  const Tensor y = result_of(kept, to, keep_dims);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "prod", {x}, [x = Saved(x), kept = Saved(kept, y), to](const Tensor& dy) {
    if (grad_enabled()) return Grads{mul(dy.reshape(to.kept), product_of_others(x, to))};
    // The product of the other factors: y / x, but if factors are 0, the product of the nonzero factors.
    const Tensor zero = eq(x, 0.0);
    const Tensor zeros = reduce(kernels::Reduce::sum, zero.to(DType::i64), to);
    const Tensor others = reduce(kernels::Reduce::prod, masked_fill(x, zero, 1), to);
    const Tensor of_zeros = masked_fill(others, gt(zeros, 1), 0),
                 of_others = masked_fill(div(kept, x), gt(zeros, 0), 0);
    return Grads{mul(dy.reshape(kept.sizes()), where(zero, of_zeros, of_others))};
  });
}

Tensor mean(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  WEFT_CHECK(input.defined(), "mean: expected a tensor, got none");
  const OpScope scope("mean");
  if (!input.is_floating()) return mean(input.to(DType::f64), dims, keep_dims).to(DType::f32);  // f32 would round each
  const Tensor x = autocast_full(input);
  const Reduced to = reduced("mean", x, dims);
  const Tensor kept = reduce(kernels::Reduce::mean, x, to);
  const Tensor y = result_of(kept, to, keep_dims);
  return differentiable(y, "mean", {x}, [to, sizes = x.sizes()](const Tensor& dy) {
    return Grads{affine(dy, 1.0 / static_cast<double>(to.count), 0).reshape(to.kept).expand(sizes)};
  });
}

Tensor max(const Tensor& x, const std::vector<int64_t>& dims, bool keep_dims) {
  return extremum("max", kernels::Reduce::max, x, dims, keep_dims);
}

Tensor min(const Tensor& x, const std::vector<int64_t>& dims, bool keep_dims) {
  return extremum("min", kernels::Reduce::min, x, dims, keep_dims);
}

Tensor norm(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  WEFT_CHECK(input.defined() && input.is_floating(), "norm: expected a floating tensor, got ", input);
  const OpScope scope("norm");
  const Tensor x = autocast_full(input);
  const Reduced to = reduced("norm", x, dims);
  const Tensor kept = reduce(kernels::Reduce::norm, x, to);
  const Tensor y = result_of(kept, to, keep_dims);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "norm", {x}, [x = Saved(x), kept = Saved(kept, y)](const Tensor& dy) {
    // At 0 the gradient is 0, and so are later ones.
    const Tensor length = kept, divisor = masked_fill(length, eq(length, 0.0), INFINITY);
    return Grads{mul(x, div(dy.reshape(length.sizes()), divisor))};
  });
}

Tensor var(const Tensor& input, const VarOptions& options) {
  const OpScope scope("var");
  WEFT_CHECK(input.defined() && input.is_floating(), "var: expected a floating tensor, got ", input);
  const Tensor x = autocast_full(input);
  return wide_var("var", x, options).to(x.dtype());
}

Tensor std(const Tensor& input, const VarOptions& options) {
  const OpScope scope("std");
  WEFT_CHECK(input.defined() && input.is_floating(), "std: expected a floating tensor, got ", input);
  const Tensor x = autocast_full(input), variance = wide_var("std", x, options), none = eq(variance, 0.0);
  return masked_fill(sqrt(masked_fill(variance, none, 1)), none, 0).to(x.dtype());
}

Tensor logsumexp(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  const OpScope scope("logsumexp");
  WEFT_CHECK(input.defined() && input.is_floating(), "logsumexp: expected a floating tensor, got ", input);
  const Tensor x = autocast_full(input);
  if (x.numel() == 0) return log(sum(exp(x), dims, keep_dims));  // nothing has no largest element
  Tensor largest;
  {
    const NoGrad no_grad;
    largest = max(x, dims, /*keep_dims=*/true);
    largest = where(isfinite(largest), largest, 0.0);
  }
  const Tensor rest = log(sum(exp(sub(x, largest)), dims, keep_dims));
  return add(rest, largest.reshape(rest.sizes()));
}

Tensor argmax(const Tensor& x, Integer dim, bool keep_dims) {
  WEFT_CHECK(x.defined(), "argmax: expected a tensor, got none");
  const OpScope scope("argmax");
  const NoGrad no_grad;
  const int at = wrap_dim("argmax", dim, x.dim());
  WEFT_CHECK(x.size(at) > 0, "argmax: nothing to choose from in dimension ", dim, " of ", x);
  Shape kept = x.sizes();
  kept[at] = 1;
  const Tensor y = Tensor::empty(kept, DType::i64, x.device());
  const bool small = x.dtype() == DType::boolean || x.dtype() == DType::u8;
  kernels::argmax(y.queue(), y, small ? x.to(DType::i64) : x, at);
  return keep_dims ? y : y.squeeze(at);
}

Tensor argmin(const Tensor& x, Integer dim, bool keep_dims) {
  WEFT_CHECK(x.defined(), "argmin: expected a tensor, got none");
  const NoGrad no_grad;
  if (x.is_floating()) return argmax(neg(x), dim, keep_dims);
  const int at = wrap_dim("argmin", dim, x.dim());  // the least integer has no negative
  WEFT_CHECK(x.size(at) > 0, "argmin: nothing to choose from in dimension ", dim, " of ", x);
  const Tensor y = topk(x, 1, at, /*largest=*/false).indices;
  return keep_dims ? y : y.squeeze(at);
}

Tensor cumsum(const Tensor& x, Integer dim) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "cumsum: expected a tensor of at least one dimension, got ", x);
  const OpScope scope("cumsum");
  return scan(x, wrap_dim("cumsum", dim, x.dim()), false);
}

Tensor cumprod(const Tensor& x, Integer dim) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "cumprod: expected a tensor of at least one dimension, got ", x);
  const OpScope scope("cumprod");
  const int at = wrap_dim("cumprod", dim, x.dim());
  const int64_t n = x.size(at);
  Tensor y = x.is_floating() ? x : x.to(DType::i64);
  for (int64_t step = 1; step < n; step *= 2)  // y[i]: the product of up to 2 step elements that end with x[i]
    y = concat({y.slice(at, 0, step), mul(y.slice(at, step, n - step), y.slice(at, 0, n - step))}, at);
  return y.storage() == x.storage() ? y.clone() : y;
}

Tensor logcumsumexp(const Tensor& x, Integer dim) {
  WEFT_CHECK(x.defined() && x.is_floating() && x.dim() >= 1,
             "logcumsumexp: expected a floating tensor of at least one dimension, got ", x);
  const OpScope scope("logcumsumexp");
  const int at = wrap_dim("logcumsumexp", dim, x.dim());
  const int64_t n = x.size(at);
  Tensor y = x.dtype() == DType::f64 ? x : x.to(DType::f32);  // one rounding for all passes
  for (int64_t step = 1; step < n; step *= 2)
    y = concat({y.slice(at, 0, step), logaddexp(y.slice(at, step, n - step), y.slice(at, 0, n - step))}, at);
  y = y.to(x.dtype());
  return y.storage() == x.storage() ? y.clone() : y;
}

Tensor cdist(const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.defined() && b.defined() && a.is_floating() && b.is_floating() && a.dim() >= 2 && b.dim() >= 2 &&
                 a.size(-1) == b.size(-1),
             "cdist: expected floating points [..., N, D] and [..., M, D], got ", a, " and ", b);
  const OpScope scope("cdist");
  return norm(sub(a.unsqueeze(-2), b.unsqueeze(-3)), {-1});
}

}  // namespace weft
