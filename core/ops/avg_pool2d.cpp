// SPDX-License-Identifier: Apache-2.0
#include "core/ops/avg_pool2d.h"

#include "core/autograd.h"
#include "core/trace.h"

namespace weft {

Tensor avg_pool2d(const Tensor& input, const Pool2dOptions& options) {
  const OpScope scope("avg_pool2d");
  const Pooling pool = pooling("avg_pool2d", input, options);
  const Tensor x = input.contiguous(), y = Tensor::empty(pool.sizes, x.dtype(), x.device());
  kernels::avg_pool2d_forward(y.queue(), y, x, pool.arguments);
  return differentiable(y, "avg_pool2d", {x}, [sizes = x.sizes(), arguments = pool.arguments](const Tensor& dy) {
    const Tensor dx = Tensor::empty(sizes, dy.dtype(), dy.device());
    kernels::avg_pool2d_backward(dx.queue(), dx, dy.contiguous(), arguments);
    return Grads{dx};
  });
}

}  // namespace weft
