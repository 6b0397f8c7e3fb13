// SPDX-License-Identifier: Apache-2.0
#include "core/autograd.h"
#include "core/tensor.h"
#include "core/trace.h"

namespace weft {

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

Tensor Tensor::transpose(int64_t a, int64_t b) const {
  const int first = wrap_dim("transpose", a, dim()), second = wrap_dim("transpose", b, dim());
  Shape order = sizes();
  for (int d = 0; d < dim(); ++d) order[d] = d == first ? second : d == second ? first : d;
  return permute(order);
}

}  // namespace weft
