// SPDX-License-Identifier: Apache-2.0
#include "core/ops/index_select.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/index.h"

namespace weft {

Tensor index_select(const Tensor& input, int64_t dim, const Tensor& where) {
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
    return Grads{dx};
  });
}

}  // namespace weft
