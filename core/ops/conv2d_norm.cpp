// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv2d_norm.h"

#include "core/autograd.h"
#include "core/ops/conv2d_operands.h"
#include "core/trace.h"

namespace weft {

Tensor conv2d_norm(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& conv,
                   const Tensor& weight, const Tensor& shift, const Tensor& running_mean, const Tensor& running_var,
                   const BatchNormOptions& norm) {
  WEFT_CHECK(!norm.training, "conv2d_norm: expected evaluation; a norm by the batch's statistics is batch_norm()");
  for (const Tensor& input : {x, w, bias, weight, shift, norm.residual})
    if (wants_gradient(input))
      return batch_norm(conv2d(x, w, bias, conv), weight, shift, running_mean, running_var, norm);
  const OpScope scope("conv2d_norm");
  const auto [in, filters, offset, y] = conv2d_operands(x, w, bias, conv);
  check_batch_norm(y, weight, shift, running_mean, running_var, norm);
  const Tensor residual = norm.residual.defined() ? norm.residual.to(y.dtype()).contiguous() : Tensor();
  kernels::conv2d_norm(y.queue(), y, in, filters, offset, running_mean, running_var, weight, shift, residual,
                       {conv, norm.eps, norm.relu});
  return y;
}

}  // namespace weft
