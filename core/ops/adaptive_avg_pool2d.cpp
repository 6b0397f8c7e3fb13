// SPDX-License-Identifier: Apache-2.0
#include "core/ops/adaptive_avg_pool2d.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/pool2d.h"

namespace weft {

Tensor adaptive_avg_pool2d(const Tensor& input, Size2d size) {
  const OpScope scope("adaptive_avg_pool2d");
  WEFT_CHECK(input.defined() && input.is_floating() && input.dim() == 4 && input.size(1) > 0 && input.size(2) > 0,
             "adaptive_avg_pool2d: expected a floating input [N, H, W, C], got ", input);
  WEFT_CHECK(size.h >= 1 && size.w >= 1, "adaptive_avg_pool2d: expected an output of at least 1x1, got ", size.h, "x",
             size.w);
  const Tensor x = input.contiguous(), y = Tensor::empty({x.size(0), size.h, size.w, x.size(3)}, x.dtype(), x.device());
  kernels::adaptive_avg_pool2d_forward(y.queue(), y, x);
  return differentiable(y, "adaptive_avg_pool2d", {x}, [sizes = x.sizes()](const Tensor& dy) {
    const Tensor dx = Tensor::empty(sizes, dy.dtype(), dy.device());
    kernels::adaptive_avg_pool2d_backward(dx.queue(), dx, dy.contiguous());
    return Grads{dx};
  });
}

}  // namespace weft
