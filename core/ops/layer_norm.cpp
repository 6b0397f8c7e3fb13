// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layer_norm.h"

#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/normed_sum.h"
#include "core/ops/rows.h"
#include "core/trace.h"
#include "kernels/layer_norm.h"

namespace weft {
namespace {

void check(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_norm_input(op, x);
  check_norm_vector(op, "weight", weight, x);
  check_norm_vector(op, "bias", bias, x);
}

/// y = norm(x), or of sum = x + residual where that is defined.
Tensor normalize(const Tensor& x, const Tensor& sum, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                 double eps) {
  const Tensor y = empty_like(x), input = sum.defined() ? sum : x;
  const DType dtype = norm_dtype(x);
  const Tensor mean = Tensor::empty({x.numel() / x.size(-1)}, dtype, x.device()), invstd = empty_like(mean);
  kernels::layer_norm_forward(y.queue(), rows_of(y), mean, invstd, rows_of(sum), rows_of(x), rows_of(residual), weight,
                              bias, eps);
  const bool dweight = wants_gradient(weight), dbias = wants_gradient(bias);
  if (!wants_gradient(input) && !dweight && !dbias) return y;
  return differentiable(y, "layer_norm", {input, weight, bias},
                        [dweight, dbias, dtype, x = Saved(input), weight = Saved(weight), mean = Saved(mean),
                         invstd = Saved(invstd)](const Tensor& gradient, BackwardContext& context) {
                          const Tensor dy = gradient.contiguous(), input_x = x, dx = empty_like(input_x);
                          const Shape vector{input_x.size(-1)};
                          const Tensor dw = dweight ? context.gradient_target(1, vector, dtype, dy.device()) : Tensor();
                          const Tensor db = dbias ? context.gradient_target(2, vector, dtype, dy.device()) : Tensor();
                          const Tensor more = context.arrived_gradient(0, dx.sizes(), dx.dtype());
                          kernels::layer_norm_backward(dy.queue(), rows_of(dx), dw, db, rows_of(dy), rows_of(input_x),
                                                       weight, mean, invstd, rows_of(more));
                          return Grads{dx, dw, db};
                        });
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
  const OpScope scope("layer_norm");
  check("layer_norm", input, weight, bias);
  return normalize(input.contiguous(), {}, {}, weight, bias, eps);
}

NormedSum add_layer_norm(const Tensor& input, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                         double eps) {
  const OpScope scope("add_layer_norm");
  check("add_layer_norm", input, weight, bias);
  const Tensor x = input.contiguous(), more = norm_residual("add_layer_norm", residual, x);
  const Tensor sum = recorded_sum(empty_like(x), x, more);
  return {sum, normalize(x, sum, more, weight, bias, eps)};
}

}  // namespace weft
