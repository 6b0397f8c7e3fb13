// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layer_norm.h"

#include "core/autograd.h"
#include "core/gradient_target.h"
#include "core/ops/rows.h"
#include "core/trace.h"
#include "kernels/layer_norm.h"

namespace weft {
namespace {

void check_vector(const char* what, const Tensor& vector, const Tensor& x) {
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  WEFT_CHECK(!vector.defined() || (vector.dim() == 1 && vector.size(0) == x.size(-1) && vector.dtype() == dtype &&
                                   vector.device() == x.device() && vector.is_contiguous()),
             "layer_norm: expected ", what, " ", dtype, "[", x.size(-1), "] for input ", x, ", got ", vector);
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
  const OpScope scope("layer_norm");
  WEFT_CHECK(input.defined() && input.is_floating() && input.dim() >= 1 && input.size(-1) > 0,
             "layer_norm: expected a floating input [..., C], got ", input);
  check_vector("weight", weight, input);
  check_vector("bias", bias, input);
  const Tensor x = input.contiguous(), y = empty_like(x);
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor mean = Tensor::empty({x.numel() / x.size(-1)}, dtype, x.device()), invstd = empty_like(mean);
  kernels::layer_norm_forward(y.queue(), rows_of(y), mean, invstd, rows_of(x), weight, bias, eps);
  const bool dweight = wants_gradient(weight), dbias = wants_gradient(bias);
  if (!wants_gradient(x) && !dweight && !dbias) return y;
  return differentiable(y, "layer_norm", {x, weight, bias},
                        [dweight, dbias, dtype, x = Saved(x), weight = Saved(weight), mean = Saved(mean),
                         invstd = Saved(invstd)](const Tensor& gradient) {
                          const Tensor dy = gradient.contiguous(), input_x = x, dx = empty_like(input_x);
                          const Shape vector{input_x.size(-1)};
                          const Tensor dw = dweight ? gradient_target(1, vector, dtype, dy.device()) : Tensor();
                          const Tensor db = dbias ? gradient_target(2, vector, dtype, dy.device()) : Tensor();
                          kernels::layer_norm_backward(dy.queue(), rows_of(dx), dw, db, rows_of(dy), rows_of(input_x),
                                                       weight, mean, invstd);
                          return Grads{dx, dw, db};
                        });
}

}  // namespace weft
