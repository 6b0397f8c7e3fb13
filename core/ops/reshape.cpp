// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/autograd.h"
#include "core/tensor.h"
#include "core/trace.h"

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
/// among themselves can be cut anew.
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

Tensor Tensor::flatten(int64_t first, int64_t last) const {
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

Tensor Tensor::squeeze(int64_t dim) const {
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

Tensor Tensor::unsqueeze(int64_t dim) const {
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

}  // namespace weft
