// SPDX-License-Identifier: Apache-2.0
#include "core/ops/max_pool2d.h"

#include "core/autograd.h"
#include "core/trace.h"

namespace weft {

Tensor max_pool2d(const Tensor& input, const Pool2dOptions& options) {
  const OpScope scope("max_pool2d");
  const Pooling pool = pooling("max_pool2d", input, options);
  const Tensor x = input.contiguous(), y = Tensor::empty(pool.sizes, x.dtype(), x.device());
  const Tensor index = Tensor::empty(pool.sizes, DType::i32, x.device());
  kernels::max_pool2d_forward(y.queue(), y, index, x, pool.arguments);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "max_pool2d", {x},
                        [index = Saved(index), sizes = x.sizes(), arguments = pool.arguments](const Tensor& dy) {
                          const Tensor dx = Tensor::empty(sizes, dy.dtype(), dy.device());
                          kernels::max_pool2d_backward(dx.queue(), dx, dy.contiguous(), index, arguments);
                          return Grads{dx};
                        });
}

}  // namespace weft
