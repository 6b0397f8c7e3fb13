// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/autograd.h"
#include "core/ops/broadcast.h"
#include "core/tensor.h"
#include "core/trace.h"
#include "kernels/contracts/copy.h"

namespace weft {
namespace {

/// `sizes` with a -1 worked out.
Shape resolved(const Tensor& x, const Shape& sizes) {
  Shape result = sizes;
  int64_t known = 1;
  int open = -1;
  for (int d = 0; d < sizes.rank(); ++d) {
    WEFT_CHECK(sizes[d] >= -1 && (sizes[d] != -1 || open < 0), "reshape: expected sizes with at most one -1, got ",
               sizes);
    if (sizes[d] == -1)
      open = d;
    else
      known *= sizes[d];
  }
  if (open >= 0 && known != 0 && x.numel() % known == 0) result[open] = x.numel() / known;
  WEFT_CHECK(open < 0 || result[open] >= 0, "reshape: ", x, " does not fit ", sizes);
  WEFT_CHECK(result.numel() == x.numel(), "reshape: ", x, " has ", x.numel(), " elements, ", sizes, " has ",
             result.numel());
  return result;
}

/// Strides that show x's memory with other sizes; false where that takes a copy. Runs of dimensions of x that are dense
/// among themselves can be divided in other ways.
bool strided(const kernels::View& x, const Shape& sizes, kernels::View& y) {
  y = x;
  y.rank = sizes.rank();
  for (int d = 0; d < y.rank; ++d) y.sizes[d] = sizes[d];
  if (x.is_contiguous()) {
    int64_t stride = 1;
    for (int d = y.rank - 1; d >= 0; --d) {
      y.strides[d] = stride;
      stride *= std::max<int64_t>(sizes[d], 1);
    }
    return true;
  }
  int to = y.rank - 1;
  int64_t run = 1, filled = 1, base = x.rank > 0 ? x.strides[x.rank - 1] : 1;
  for (int from = x.rank - 1; from >= 0; --from) {
    run *= x.sizes[from];
    if (from > 0 && (x.sizes[from - 1] == 1 || x.strides[from - 1] == run * base)) continue;
    while (to >= 0 && (filled < run || y.sizes[to] == 1)) {
      y.strides[to] = filled * base;
      filled *= y.sizes[to--];
    }
    if (filled != run) return false;
    if (from > 0) {
      base = x.strides[from - 1];
      run = filled = 1;
    }
  }
  return to < 0;
}

}  // namespace

Tensor Tensor::reshape(const Shape& sizes) const {
  const OpScope scope("reshape");
  if (this->sizes() == sizes) return *this;
  const Shape target = resolved(*this, sizes);
  kernels::View view;
  if (!strided(impl_->view, target, view)) return contiguous().reshape(target);
  return differentiable(alias(view), "reshape", {*this},
                        [from = this->sizes()](const Tensor& dy) { return Grads{dy.reshape(from)}; });
}

Tensor Tensor::flatten(Integer first, Integer last) const {
  if (dim() == 0) return reshape({1});
  const int begin = wrap_dim("flatten", first, dim()), end = wrap_dim("flatten", last, dim());
  WEFT_CHECK(begin <= end, "flatten: expected first <= last, got ", first, " and ", last, " for ", *this);
  Shape sizes;
  for (int d = 0; d < dim(); ++d) {
    if (d <= begin || d > end)
      sizes.push_back(size(d));
    else
      sizes[begin] *= size(d);
  }
  return reshape(sizes);
}

Tensor Tensor::squeeze(Integer dim) const {
  const int at = wrap_dim("squeeze", dim, this->dim());
  WEFT_CHECK(size(at) == 1, "squeeze: expected size 1 in dimension ", dim, ", got ", *this);
  const OpScope scope("squeeze");
  kernels::View view = known().view;
  --view.rank;
  for (int d = at; d < view.rank; ++d) {
    view.sizes[d] = impl_->view.sizes[d + 1];
    view.strides[d] = impl_->view.strides[d + 1];
  }
  return differentiable(alias(view), "squeeze", {*this}, [at](const Tensor& dy) { return Grads{dy.unsqueeze(at)}; });
}

Tensor Tensor::unsqueeze(Integer dim) const {
  WEFT_CHECK(this->dim() < kMaxRank, "unsqueeze: ", *this, " has ", kMaxRank, " dimensions already");
  const int at = wrap_dim("unsqueeze", dim, this->dim() + 1);
  const OpScope scope("unsqueeze");
  kernels::View view = known().view;
  for (int d = view.rank; d > at; --d) {
    view.sizes[d] = view.sizes[d - 1];
    view.strides[d] = view.strides[d - 1];
  }
  view.strides[at] = at < view.rank ? view.sizes[at + 1] * view.strides[at + 1] : 1;
  view.sizes[at] = 1;
  ++view.rank;
  return differentiable(alias(view), "unsqueeze", {*this}, [at](const Tensor& dy) { return Grads{dy.squeeze(at)}; });
}

Tensor Tensor::permute(const Shape& order) const {
  const OpScope scope("permute");
  WEFT_CHECK(order.rank() == dim(), "permute: expected an order of ", dim(), " dimensions for ", *this, ", got ",
             order);
  kernels::View view = known().view;
  Shape inverse = order;
  uint32_t seen = 0;
  for (int d = 0; d < dim(); ++d) {
    const int from = wrap_dim("permute", order[d], dim());
    WEFT_CHECK(!(seen >> from & 1), "permute: dimension ", from, " stands twice in ", order);
    seen |= 1u << from;
    view.sizes[d] = impl_->view.sizes[from];
    view.strides[d] = impl_->view.strides[from];
    inverse[from] = d;
  }
  return differentiable(alias(view), "permute", {*this},
                        [inverse](const Tensor& dy) { return Grads{dy.permute(inverse)}; });
}

Tensor Tensor::transpose(Integer a, Integer b) const {
  const int first = wrap_dim("transpose", a, dim()), second = wrap_dim("transpose", b, dim());
  Shape order = sizes();
  for (int d = 0; d < dim(); ++d) order[d] = d == first ? second : d == second ? first : d;
  return permute(order);
}

Tensor Tensor::expand(const Shape& wanted) const {
  const OpScope scope("expand");
  if (this->sizes() == wanted) return *this;
  WEFT_CHECK(wanted.rank() >= dim(), "expand: ", *this, " has more dimensions than ", wanted);
  const int extra = wanted.rank() - dim();
  Shape sizes = wanted;
  for (int d = 0; d < dim(); ++d)
    if (sizes[d + extra] == -1) sizes[d + extra] = size(d);
  for (int d = 0; d < dim(); ++d)
    WEFT_CHECK(size(d) == sizes[d + extra] || size(d) == 1, "expand: ", *this, " does not stretch to ", sizes,
               ": only sizes of 1 do");
  for (const int64_t size : sizes)
    WEFT_CHECK(size >= 0, "expand: sizes must not be negative, got ", wanted,
               "; -1 keeps the size of a dimension that is there");
  sizes.numel();  // or its error
  return differentiable(alias(broadcast_view(*this, sizes)), "expand", {*this},
                        [from = this->sizes()](const Tensor& dy) { return Grads{reduce_to(dy, from)}; });
}

namespace {

kernels::View part(const kernels::View& x, int dim, int64_t start, int64_t length, int64_t step) {
  kernels::View view = x;
  // An empty slice may begin past the end: its address is never read and stays inside.
  if (length > 0)
    view.data = static_cast<char*>(x.data) + start * x.strides[dim] * static_cast<int64_t>(size_of(x.dtype));
  view.sizes[dim] = length;
  view.strides[dim] *= step;
  return view;
}

/// Zeros of these sizes with dy in the slice.
Tensor slice_backward(const Tensor& dy, const Shape& sizes, int dim, int64_t start, int64_t length, int64_t step) {
  const Tensor dx = Tensor::zeros(sizes, dy.dtype(), dy.device());
  kernels::copy(dx.queue(), part(dx.view(), dim, start, length, step), dy);
  if (!wants_gradient(dy)) return dx;
  return differentiable(dx, "slice", {dy},
                        [=](const Tensor& ddx) { return Grads{ddx.slice(dim, start, length, step)}; });
}

}  // namespace

Tensor Tensor::slice(Integer dim, Integer start, Integer length, Integer step) const {
  const OpScope scope("slice");
  const int at = wrap_dim("slice", dim, this->dim());
  const int64_t whole = size(at), first = start < 0 ? start + whole : int64_t{start};
  WEFT_CHECK(step >= 1, "slice: expected a step of at least 1, got ", step);
  WEFT_CHECK(length >= 0 && first >= 0 &&
                 (length == 0 ? first <= whole : first < whole && (length - 1) <= (whole - 1 - first) / step),
             "slice: ", length, " elements from ", start, " by ", step, " do not lie in dimension ", dim, " of ",
             *this);
  return differentiable(alias(part(impl_->view, at, first, length, step)), "slice", {*this},
                        [at, first, length, step, sizes = sizes()](const Tensor& dy) {
                          return Grads{slice_backward(dy, sizes, at, first, length, step)};
                        });
}

Tensor Tensor::select(Integer dim, Integer index) const {
  const int at = wrap_dim("select", dim, this->dim());
  WEFT_CHECK(index >= -size(at) && index < size(at), "select: index ", index, " is outside dimension ", dim, " of ",
             *this);
  return slice(at, index, 1).squeeze(at);
}

}  // namespace weft
