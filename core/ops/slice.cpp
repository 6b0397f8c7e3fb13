// SPDX-License-Identifier: Apache-2.0
#include "core/autograd.h"
#include "core/tensor.h"
#include "core/trace.h"
#include "kernels/copy.h"

namespace weft {
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

}  // namespace

Tensor Tensor::slice(int64_t dim, int64_t start, int64_t length, int64_t step) const {
  const OpScope scope("slice");
  const int at = wrap_dim("slice", dim, this->dim());
  const int64_t whole = size(at), first = start < 0 ? start + whole : start;
  WEFT_CHECK(step >= 1, "slice: expected a step of at least 1, got ", step);
  WEFT_CHECK(length >= 0 && first >= 0 &&
                 (length == 0 ? first <= whole : first < whole && (length - 1) <= (whole - 1 - first) / step),
             "slice: ", length, " elements from ", start, " by ", step, " do not lie in dimension ", dim, " of ",
             *this);
  return differentiable(alias(part(impl_->view, at, first, length, step)), "slice", {*this},
                        [at, first, length, step, sizes = sizes()](const Tensor& dy) {
                          const Tensor dx = Tensor::zeros(sizes, dy.dtype(), dy.device());
                          kernels::copy(dx.queue(), part(dx.view(), at, first, length, step), dy);
                          return Grads{dx};
                        });
}

Tensor Tensor::select(int64_t dim, int64_t index) const {
  const int at = wrap_dim("select", dim, this->dim());
  WEFT_CHECK(index >= -size(at) && index < size(at), "select: index ", index, " is outside dimension ", dim, " of ",
             *this);
  return slice(at, index, 1).squeeze(at);
}

}  // namespace weft
