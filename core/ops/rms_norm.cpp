// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rms_norm.h"

#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/normed_sum.h"
#include "core/ops/rows.h"
#include "core/trace.h"
#include "kernels/rms_norm.h"

namespace weft {
namespace {

/// y = norm(x), or of sum = x + residual where that is defined.
Tensor normalize(const Tensor& x, const Tensor& sum, const Tensor& residual, const Tensor& weight, double eps) {
  const Tensor y = empty_like(x), input = sum.defined() ? sum : x;
  const DType dtype = norm_dtype(x);
  const Tensor invrms = Tensor::empty({x.numel() / x.size(-1)}, dtype, x.device());
  kernels::rms_norm_forward(y.queue(), rows_of(y), invrms, rows_of(sum), rows_of(x), rows_of(residual), weight, eps);
  const bool dweight = wants_gradient(weight);
  if (!wants_gradient(input) && !dweight) return y;
  return differentiable(
      y, "rms_norm", {input, weight},
      [dweight, dtype, x = Saved(input), weight = Saved(weight), invrms = Saved(invrms)](const Tensor& gradient,
                                                                                         BackwardContext& context) {
        const Tensor dy = gradient.contiguous(), input_x = x, dx = empty_like(input_x);
        const Tensor dw = dweight ? context.gradient_target(1, Shape{input_x.size(-1)}, dtype, dy.device()) : Tensor();
        const Tensor more = context.arrived_gradient(0, dx.sizes(), dx.dtype());
        kernels::rms_norm_backward(dy.queue(), rows_of(dx), dw, rows_of(dy), rows_of(input_x), weight, invrms,
                                   rows_of(more));
        return Grads{dx, dw};
      });
}

}  // namespace

Tensor rms_norm(const Tensor& input, const Tensor& weight, double eps) {
  const OpScope scope("rms_norm");
  check_norm_input("rms_norm", input);
  check_norm_vector("rms_norm", "weight", weight, input);
  return normalize(input.contiguous(), {}, {}, weight, eps);
}

NormedSum add_rms_norm(const Tensor& input, const Tensor& residual, const Tensor& weight, double eps) {
  const OpScope scope("add_rms_norm");
  check_norm_input("add_rms_norm", input);
  check_norm_vector("add_rms_norm", "weight", weight, input);
  const Tensor x = input.contiguous(), more = norm_residual("add_rms_norm", residual, x);
  const Tensor sum = recorded_sum(empty_like(x), x, more);
  return {sum, normalize(x, sum, more, weight, eps)};
}

}  // namespace weft
