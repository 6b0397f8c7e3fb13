// SPDX-License-Identifier: Apache-2.0
#include "core/ops/scatter_add.h"

#include "core/autograd.h"
#include "core/ops/add.h"
#include "core/ops/gather.h"
#include "core/trace.h"
#include "kernels/index.h"

namespace weft {

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& where, const Tensor& input) {
  const OpScope scope("scatter_add");
  WEFT_CHECK(x.defined() && x.dim() >= 1 && x.is_floating(),
             "scatter_add: expected a floating tensor of at least one dimension, got ", x);
  const int at = wrap_dim("scatter_add", dim, x.dim());
  WEFT_CHECK(where.defined() && input.defined() && !where.is_floating() && where.dtype() != DType::boolean &&
                 where.sizes() == input.sizes() && where.dim() == x.dim(),
             "scatter_add: expected an i64 index of the source's sizes and of ", x.dim(), " dimensions, got index ",
             where, " and source ", input);
  for (int d = 0; d < x.dim(); ++d)
    WEFT_CHECK(d == at || where.size(d) == x.size(d), "scatter_add: source ", input, " and ", x,
               " may differ in dimension ", dim, " only");
  WEFT_CHECK(x.dtype() == input.dtype() && x.device() == input.device() && x.device() == where.device(),
             "scatter_add: expected one dtype and one device, got ", x, ", index ", where, ", source ", input);
  const Tensor source = input.contiguous(), index = where.to(DType::i64).contiguous();
  const Tensor sums = Tensor::empty(x.sizes(), x.dtype(), x.device());
  kernels::gather_backward(sums.queue(), sums, source, index, at);
  if (!wants_gradient(source)) return add(x, sums);
  return add(x, differentiable(sums, "scatter_add", {source}, [at, index = Saved(index)](const Tensor& dy) {
               return Grads{gather(dy, at, index)};
             }));
}

}  // namespace weft
