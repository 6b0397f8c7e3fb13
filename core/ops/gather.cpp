// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gather.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/index.h"

namespace weft {

Tensor gather(const Tensor& input, int64_t dim, const Tensor& where) {
  const OpScope scope("gather");
  WEFT_CHECK(input.defined() && input.dim() >= 1, "gather: expected a tensor of at least one dimension, got ", input);
  const int at = wrap_dim("gather", dim, input.dim());
  WEFT_CHECK(where.defined() && where.dim() == input.dim() && !where.is_floating() && where.dtype() != DType::boolean,
             "gather: expected an i64 index of ", input.dim(), " dimensions for ", input, ", got ", where);
  const Shape sizes = where.sizes();
  for (int d = 0; d < input.dim(); ++d)
    WEFT_CHECK(d == at || sizes[d] == input.size(d), "gather: index ", where, " and input ", input,
               " may differ in dimension ", dim, " only");
  WEFT_CHECK(where.device() == input.device(), "gather: expected tensors on one device, got ", input, " and ", where);
  const Tensor x = input.contiguous(), index = where.to(DType::i64).contiguous();
  const Tensor y = Tensor::empty(sizes, x.dtype(), x.device());
  kernels::gather(y.queue(), y, x, index, at);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "gather", {x}, [at, index = Saved(index), x_sizes = x.sizes()](const Tensor& dy) {
    const Tensor dx = Tensor::empty(x_sizes, dy.dtype(), dy.device());
    kernels::gather_backward(dx.queue(), dx, dy.contiguous(), index, at);
    return Grads{dx};
  });
}

}  // namespace weft
