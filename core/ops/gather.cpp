// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gather.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/index.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/index.h"

namespace weft {
namespace {

/// The first elements of x along each dimension but `at` (-1: all), as many as `index` has.
Tensor narrowed(const Tensor& x, const Tensor& index, int at) {
  Tensor y = x;
  for (int d = 0; d < x.dim(); ++d)
    if (d != at && y.size(d) != index.size(d)) y = y.slice(d, 0, index.size(d));
  return y;
}

/// Tensors of these sizes with the sums of the elements of x that `index` sends to each place.
Tensor summed_at(const char* op, const Tensor& x, const Tensor& index, int at, const Shape& sizes) {
  const Tensor sums = Tensor::empty(sizes, x.dtype(), x.device());
  kernels::gather_backward(sums.queue(), sums, x.contiguous(), index, at);
  if (!wants_gradient(x)) return sums;
  return differentiable(sums, op, {x},
                        [at, index = Saved(index)](const Tensor& dy) { return Grads{gather(dy, at, index)}; });
}

/// Throws unless `index` is no longer than x along any dimension but `at`.
void check_index(const char* op, const Tensor& x, int at, const Tensor& index) {
  WEFT_CHECK(index.defined() && index.dim() == x.dim() && !index.is_floating() && index.dtype() != DType::boolean, op,
             ": expected an i64 index of ", x.dim(), " dimensions for ", x, ", got ", index);
  for (int d = 0; d < x.dim(); ++d)
    WEFT_CHECK(d == at || index.size(d) <= x.size(d), op, ": index ", index, " is longer than ", x, " in dimension ", d,
               "; it may be in dimension ", at, " only");
}

/// The dimension of x whose positions `index` names. Errors: what scatter() and scatter_add() do not take.
int scattered_dim(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const int at = wrap_dim(op, dim, x.dim());
  check_index(op, x, at, index);
  WEFT_CHECK(source.defined() && source.dim() == x.dim(), op, ": expected a source of ", x.dim(), " dimensions, got ",
             source);
  for (int d = 0; d < x.dim(); ++d)
    WEFT_CHECK(index.size(d) <= source.size(d), op, ": index ", index, " is longer than the source ", source,
               " in dimension ", d);
  WEFT_CHECK(x.dtype() == source.dtype() && x.device() == source.device() && x.device() == index.device(), op,
             ": expected one dtype and one device, got ", x, ", index ", index, ", source ", source);
  return at;
}

}  // namespace

Tensor gather(const Tensor& input, Integer dim, const Tensor& where) {
  const OpScope scope("gather");
  WEFT_CHECK(input.defined() && input.dim() >= 1, "gather: expected a tensor of at least one dimension, got ", input);
  const int at = wrap_dim("gather", dim, input.dim());
  check_index("gather", input, at, where);
  WEFT_CHECK(where.device() == input.device(), "gather: expected tensors on one device, got ", input, " and ", where);
  const Tensor x = narrowed(input, where, at).contiguous(), index = where.to(DType::i64).contiguous();
  const Tensor y = Tensor::empty(where.sizes(), x.dtype(), x.device());
  kernels::gather(y.queue(), y, x, index, at);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "gather", {x}, [at, index = Saved(index), x_sizes = x.sizes()](const Tensor& dy) {
    return Grads{summed_at("gather", dy, index, at, x_sizes)};
  });
}

Tensor scatter_add(const Tensor& x, Integer dim, const Tensor& where, const Tensor& input) {
  const OpScope scope("scatter_add");
  WEFT_CHECK(x.defined() && x.dim() >= 1 && x.is_floating(),
             "scatter_add: expected a floating tensor of at least one dimension, got ", x);
  const int at = scattered_dim("scatter_add", x, dim, where, input);
  const Tensor source = narrowed(input, where, -1).contiguous(), index = where.to(DType::i64).contiguous();
  Tensor sums = summed_at("scatter_add", source, index, at, narrowed(x.detach(), where, at).sizes());
  for (int d = 0; d < x.dim(); ++d)
    if (sums.size(d) != x.size(d)) sums = pad(sums, d, 0, x.size(d) - sums.size(d));
  return add(x, sums);
}

Tensor scatter(const Tensor& x, Integer dim, const Tensor& positions, const Tensor& source) {
  const OpScope scope("scatter");
  WEFT_CHECK(x.defined() && x.dim() >= 1, "scatter: expected a tensor of at least one dimension, got ", x);
  const int at = scattered_dim("scatter", x, dim, positions, source);
  Tensor index = positions.to(DType::i64).contiguous();
  // A negative position is outside of x here, as for gather and scatter_add.
  const int64_t size = x.size(at);
  if (x.device().kind == DeviceKind::cpu) {
    for (const int64_t position : index.to_vector<int64_t>())
      WEFT_CHECK(position >= 0 && position < size, "scatter: expected positions from 0 to ", size - 1, ", got ",
                 position);
  } else {
    index = where(lt(index, 0), size, index);
  }
  std::vector<Index> all;
  for (int d = 0; d < x.dim(); ++d) {
    Shape along;
    for (int k = 0; k < x.dim(); ++k) along.push_back(k == d ? index.size(d) : 1);
    all.emplace_back(d == at ? index : Tensor::arange(index.size(d), DType::i64, x.device()).reshape(along));
  }
  return index_put(x, all, narrowed(source, index, -1));
}

Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, Number value) {
  WEFT_CHECK(x.defined() && index.defined(), "scatter: expected two tensors, got ", x, " and ", index);
  return scatter(x, dim, index, Tensor::full({}, value, x.dtype(), x.device()).expand(index.sizes()));
}

Tensor index_select(const Tensor& input, Integer dim, const Tensor& where) {
  const OpScope scope("index_select");
  WEFT_CHECK(input.defined() && input.dim() >= 1, "index_select: expected a tensor of at least one dimension, got ",
             input);
  const int at = wrap_dim("index_select", dim, input.dim());
  WEFT_CHECK(where.defined() && where.dim() == 1 && !where.is_floating() && where.dtype() != DType::boolean,
             "index_select: expected an index i64[n], got ", where);
  Shape sizes = input.sizes();
  sizes[at] = where.size(0);
  WEFT_CHECK(where.device() == input.device(), "index_select: expected tensors on one device, got ", input, " and ",
             where);
  const Tensor x = input.contiguous(), index = where.to(DType::i64).contiguous();
  const Tensor y = Tensor::empty(sizes, x.dtype(), x.device());
  kernels::index_select(y.queue(), y, x, index, at);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "index_select", {x}, [at, index = Saved(index), x_sizes = x.sizes()](const Tensor& dy) {
    const Tensor dx = Tensor::empty(x_sizes, dy.dtype(), dy.device());
    kernels::index_select_backward(dx.queue(), dx, dy.contiguous(), index, at);
    if (!wants_gradient(dy)) return Grads{dx};
    return Grads{differentiable(dx, "index_select", {dy},
                                [at, index](const Tensor& ddx) { return Grads{index_select(ddx, at, index)}; })};
  });
}

Tensor one_hot(const Tensor& labels, Integer classes, DType dtype) {
  WEFT_CHECK(labels.defined() && !labels.is_floating() && labels.dtype() != DType::boolean,
             "one_hot: expected integer labels, got ", labels);
  WEFT_CHECK(classes > 0, "one_hot: expected at least one class, got ", classes);
  if (labels.device().kind == DeviceKind::cpu)
    for (const int64_t label : labels.to_vector<int64_t>())
      WEFT_CHECK(label >= 0 && label < classes, "one_hot: expected labels from 0 to ", classes - 1, ", got ", label);
  return eq(labels.unsqueeze(-1), Tensor::arange(classes, DType::i64, labels.device())).to(dtype);
}

Tensor scatter_reduce(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source, Reduce reduce,
                      bool include_self) {
  constexpr const char* kOp = "scatter_reduce";
  const OpScope scope(kOp);
  WEFT_CHECK(x.defined() && x.is_floating(), kOp, ": expected a floating tensor, got ", x);
  const int at = scattered_dim(kOp, x, dim, index, source);
  const Tensor to = index.to(DType::i64), given = narrowed(source, to, -1);
  const auto spread = [&](const Tensor& values) {
    return scatter_add(Tensor::zeros(x.sizes(), x.dtype(), x.device()), at, to, values);
  };
  const auto count = [&](const Tensor& chosen) {  // in f32: 16 bits count to 256 or 2048
    const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
    return scatter_add(Tensor::zeros(x.sizes(), wide, x.device()), at, to, chosen.to(wide));
  };
  const Tensor ones = Tensor::ones(given.sizes(), DType::boolean, x.device());
  const Tensor counts = count(ones), keeps_self = include_self ? ge(counts, 0) : eq(counts, 0);
  const Tensor self = include_self ? x : where(keeps_self, x, 0);
  if (reduce == Reduce::sum) return add(self, spread(given));
  if (reduce == Reduce::mean)
    return div(add(self, spread(given)), add(counts, keeps_self.to(counts.dtype())).to(x.dtype()));

  const double sign = reduce == Reduce::max ? 1 : -1;
  Tensor y;
  {
    // scatter() leaves the last of several sources: the largest, once they are in order.
    const NoGrad no_grad;
    const Sorted ordered = sort(affine(given, sign, 0), at);
    const Tensor most = scatter(affine(x, sign, 0), at, gather(to, at, ordered.indices), ordered.values);
    y = affine(include_self ? maximum(most, affine(x, sign, 0)) : most, sign, 0);
  }
  const Tensor from_x = logical_and(keeps_self, eq(x.detach(), y)), from_source = eq(given.detach(), gather(y, at, to));
  const Tensor ties = add(count(from_source), from_x.to(counts.dtype())).to(x.dtype());
  return differentiable(
      y, kOp, {x, given},
      [at, to = Saved(to), from_x = Saved(from_x), from_source = Saved(from_source), ties](const Tensor& dy) {
        const Tensor each = div(dy, maximum(ties, Tensor::ones({}, dy.dtype(), dy.device())));
        return Grads{where(from_x, each, 0), where(from_source, gather(each, at, to), 0)};
      });
}

}  // namespace weft
