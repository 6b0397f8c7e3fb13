// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/layer_norm.h"

#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/binary.h"
#include "core/ops/copy.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/group_norm.h"
#include "kernels/contracts/layer_norm.h"

namespace weft {
namespace {

/// The dtype of a norm's weights and statistics.
DType norm_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

void check_norm_input(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.is_floating() && x.dim() >= 1 && x.size(-1) > 0, op,
             ": expected a floating input [..., C], got ", x);
}

void check_norm_vector(const char* op, const char* what, const Tensor& vector, const Tensor& x) {
  WEFT_CHECK(
      !vector.defined() || (vector.dim() == 1 && vector.size(0) == x.size(-1) && vector.dtype() == norm_dtype(x) &&
                            vector.device() == x.device() && vector.is_contiguous()),
      op, ": expected ", what, " ", norm_dtype(x), "[", x.size(-1), "] for input ", x, ", got ", vector);
}

/// Whether norm kernels take tensors of `low` beside an x of f32 in one pass.
bool norms_in_one_pass(const Tensor& x, DType low) {
  return x.device().kind == DeviceKind::cuda && x.dtype() == DType::f32 && (low == DType::bf16 || low == DType::f16);
}

/// The residual, dense and in x's dtype, or in its own where the kernel takes it beside a y of `y_dtype`.
Tensor norm_residual(const char* op, const Tensor& residual, const Tensor& x, DType y_dtype) {
  WEFT_CHECK(
      residual.defined() && residual.is_floating() && residual.sizes() == x.sizes() && residual.device() == x.device(),
      op, ": expected a floating residual of the input's sizes ", x, ", got ", residual);
  const bool own = norms_in_one_pass(x, residual.dtype()) && (y_dtype == x.dtype() || y_dtype == residual.dtype());
  return (own ? residual : residual.to(x.dtype())).contiguous();
}

/// The dtype of y that the caller asked for. Errors: neither x's nor 16 bits beside f32.
DType norm_output(const char* op, const Tensor& x, std::optional<DType> asked) {
  const DType dtype = asked.value_or(x.dtype());
  WEFT_CHECK(dtype == x.dtype() || (x.dtype() == DType::f32 && (dtype == DType::bf16 || dtype == DType::f16)), op,
             ": expected y in the input's dtype, or in bf16 or f16 of an f32 input, got ", dtype, " for ", x);
  return dtype;
}

/// Whether one kernel gives y in `y_dtype`, which is not x's, with this residual (undefined: none).
bool one_kernel_gives(const Tensor& x, const Tensor& residual, DType y_dtype) {
  return norms_in_one_pass(x, y_dtype) && (!residual.defined() || residual.dtype() == y_dtype);
}

/// y, or a tensor of x's dtype in its place, one element for all, whose history y gets as its cast: gradients of y
/// then come in x's dtype, as they do where a cast follows the norm.
Tensor before_rounding(const Tensor& y, DType dtype) {
  return y.dtype() == dtype ? y : Tensor::empty({1}, dtype, y.device()).expand(y.sizes());
}

Tensor rounded(const Tensor& y, const Tensor& recorded) {
  return y.dtype() == recorded.dtype() ? recorded : recorded_cast(y, recorded);
}

/// x in the dtype of the norm's statistics.
Tensor in_norm_dtype(const Tensor& x) { return x.to(norm_dtype(x)); }

Tensor with_weight(const Tensor& normed, const Tensor& weight, DType dtype) {
  return (weight.defined() ? mul(normed, weight) : normed).to(dtype);
}

// The norms by ops, for second derivatives; a bias is left out.

Tensor layer_norm_by_ops(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor rows = in_norm_dtype(x), centred = sub(rows, mean(rows, {-1}, true));
  return with_weight(mul(centred, rsqrt(affine(mean(square(centred), {-1}, true), 1, eps))), weight, x.dtype());
}

Tensor rms_norm_by_ops(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor rows = in_norm_dtype(x);
  return with_weight(mul(rows, rsqrt(affine(mean(square(rows), {-1}, true), 1, eps))), weight, x.dtype());
}

/// `sum`, whose memory the norm's kernel will fill with x + residual.
Tensor recorded_sum(const Tensor& sum, const Tensor& x, const Tensor& residual) {
  return differentiable(sum, "add", {x, residual}, [dtype = residual.dtype()](const Tensor& dy) {
    return Grads{dy, dy.to(dtype)};
  });
}

void check(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_norm_input(op, x);
  check_norm_vector(op, "weight", weight, x);
  check_norm_vector(op, "bias", bias, x);
}

/// y = norm(x), or of sum = x + residual where that is defined.
Tensor normalize(const Tensor& x, const Tensor& sum, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                 double eps, DType y_dtype) {
  if (y_dtype != x.dtype() && !one_kernel_gives(x, residual, y_dtype))
    return normalize(x, sum, residual, weight, bias, eps, x.dtype()).to(y_dtype);
  const Tensor y = Tensor::empty(x.sizes(), y_dtype, x.device()), input = sum.defined() ? sum : x;
  const DType dtype = norm_dtype(x);
  const Tensor mean = Tensor::empty({x.numel() / x.size(-1)}, dtype, x.device()), invstd = empty_like(mean);
  kernels::layer_norm_forward(y.queue(), rows_of(y), mean, invstd, rows_of(sum), rows_of(x), rows_of(residual), weight,
                              bias, eps);
  const bool dweight = wants_gradient(weight), dbias = wants_gradient(bias);
  if (!wants_gradient(input) && !dweight && !dbias) return y;
  return rounded(
      y, differentiable(before_rounding(y, x.dtype()), "layer_norm", {input, weight, bias},
                        [dweight, dbias, dtype, eps, x = Saved(input), weight = Saved(weight), mean = Saved(mean),
                         invstd = Saved(invstd)](const Tensor& gradient, BackwardContext& context) {
                          if (grad_enabled()) {
                            Grads grads =
                                gradients_by_ops([eps](const auto& in) { return layer_norm_by_ops(in[0], in[1], eps); },
                                                 {x, weight}, gradient, context);
                            const Shape vector{gradient.size(-1)};
                            grads.push_back(dbias ? reduce_to(in_norm_dtype(gradient), vector) : Tensor());
                            return grads;
                          }
                          const Tensor dy = gradient.contiguous(), input_x = x, dx = empty_like(input_x);
                          const Shape vector{input_x.size(-1)};
                          const Tensor dw = dweight ? context.gradient_target(1, vector, dtype, dy.device()) : Tensor();
                          const Tensor db = dbias ? context.gradient_target(2, vector, dtype, dy.device()) : Tensor();
                          const Tensor more = context.arrived_gradient(0, dx.sizes(), dx.dtype());
                          kernels::layer_norm_backward(dy.queue(), rows_of(dx), dw, db, rows_of(dy), rows_of(input_x),
                                                       weight, mean, invstd, rows_of(more));
                          return Grads{dx, dw, db};
                        }));
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                  std::optional<DType> y_dtype) {
  const OpScope scope("layer_norm");
  check("layer_norm", input, weight, bias);
  return normalize(input.contiguous(), {}, {}, weight, bias, eps, norm_output("layer_norm", input, y_dtype));
}

NormedSum add_layer_norm(const Tensor& input, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                         double eps, std::optional<DType> y_dtype) {
  const OpScope scope("add_layer_norm");
  check("add_layer_norm", input, weight, bias);
  const DType dtype = norm_output("add_layer_norm", input, y_dtype);
  const Tensor x = input.contiguous(), more = norm_residual("add_layer_norm", residual, x, dtype);
  const Tensor sum = recorded_sum(empty_like(x), x, more);
  return {sum, normalize(x, sum, more, weight, bias, eps, dtype)};
}

namespace {

/// y = norm(x), or of sum = x + residual where that is defined.
Tensor normalize(const Tensor& x, const Tensor& sum, const Tensor& residual, const Tensor& weight, double eps,
                 DType y_dtype) {
  if (y_dtype != x.dtype() && !one_kernel_gives(x, residual, y_dtype))
    return normalize(x, sum, residual, weight, eps, x.dtype()).to(y_dtype);
  const Tensor y = Tensor::empty(x.sizes(), y_dtype, x.device()), input = sum.defined() ? sum : x;
  const DType dtype = norm_dtype(x);
  const Tensor invrms = Tensor::empty({x.numel() / x.size(-1)}, dtype, x.device());
  kernels::rms_norm_forward(y.queue(), rows_of(y), invrms, rows_of(sum), rows_of(x), rows_of(residual), weight, eps);
  const bool dweight = wants_gradient(weight);
  if (!wants_gradient(input) && !dweight) return y;
  return rounded(
      y,
      differentiable(before_rounding(y, x.dtype()), "rms_norm", {input, weight},
                     [dweight, dtype, eps, x = Saved(input), weight = Saved(weight), invrms = Saved(invrms)](
                         const Tensor& gradient, BackwardContext& context) {
                       if (grad_enabled())
                         return gradients_by_ops([eps](const auto& in) { return rms_norm_by_ops(in[0], in[1], eps); },
                                                 {x, weight}, gradient, context);
                       const Tensor dy = gradient.contiguous(), input_x = x, dx = empty_like(input_x);
                       const Tensor dw =
                           dweight ? context.gradient_target(1, Shape{input_x.size(-1)}, dtype, dy.device()) : Tensor();
                       const Tensor more = context.arrived_gradient(0, dx.sizes(), dx.dtype());
                       kernels::rms_norm_backward(dy.queue(), rows_of(dx), dw, rows_of(dy), rows_of(input_x), weight,
                                                  invrms, rows_of(more));
                       return Grads{dx, dw};
                     }));
}

}  // namespace

Tensor rms_norm(const Tensor& input, const Tensor& weight, double eps, std::optional<DType> y_dtype) {
  const OpScope scope("rms_norm");
  check_norm_input("rms_norm", input);
  check_norm_vector("rms_norm", "weight", weight, input);
  return normalize(input.contiguous(), {}, {}, weight, eps, norm_output("rms_norm", input, y_dtype));
}

NormedSum add_rms_norm(const Tensor& input, const Tensor& residual, const Tensor& weight, double eps,
                       std::optional<DType> y_dtype) {
  const OpScope scope("add_rms_norm");
  check_norm_input("add_rms_norm", input);
  check_norm_vector("add_rms_norm", "weight", weight, input);
  const DType dtype = norm_output("add_rms_norm", input, y_dtype);
  const Tensor x = input.contiguous(), more = norm_residual("add_rms_norm", residual, x, dtype);
  const Tensor sum = recorded_sum(empty_like(x), x, more);
  return {sum, normalize(x, sum, more, weight, eps, dtype)};
}

namespace {

/// group_norm() by ops that can be differentiated twice.
Tensor group_norm_by_ops(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const int64_t N = x.size(0), C = x.size(-1), positions = x.numel() / (N * C);
  const Tensor rows = x.reshape({N, positions, groups, C / groups}).transpose(1, 2);  // [N, group, position, channel]
  const Tensor normed = layer_norm(rows.reshape({N, groups, positions * (C / groups)}), {}, {}, eps);
  Tensor y = normed.reshape({N, groups, positions, C / groups}).transpose(1, 2).reshape(x.sizes());
  if (weight.defined()) y = mul(y, weight.to(y.dtype()));
  if (bias.defined()) y = add(y, bias.to(y.dtype()));
  return y;
}

}  // namespace

Tensor group_norm(const Tensor& x, Integer groups, const Tensor& weight, const Tensor& bias, double eps) {
  const OpScope scope("group_norm");
  WEFT_CHECK(x.defined() && x.dim() >= 2 && x.is_floating(), "group_norm: expected a floating tensor [N, ..., C], got ",
             x);
  const int64_t N = x.size(0), C = x.size(-1);
  WEFT_CHECK(groups >= 1 && C % groups == 0, "group_norm: ", C, " channels of ", x, " do not divide into ", groups,
             " groups");
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  for (const Tensor& v : {weight, bias})
    WEFT_CHECK(!v.defined() || (v.dim() == 1 && v.size(0) == C && v.dtype() == dtype),
               "group_norm: expected weight and bias ", dtype, "[", C, "], got ", weight, " and ", bias);
  if (x.numel() == 0) return x;
  const auto samples = [N, C](const Tensor& t) { return t.reshape({N, t.numel() / (N * C), C}); };
  const Tensor input = x.contiguous(), y = empty_like(input);
  const Tensor mean = Tensor::empty({N, groups}, dtype, x.device()), invstd = empty_like(mean);
  const Tensor gain = weight.defined() ? weight.contiguous() : weight,
               offset = bias.defined() ? bias.contiguous() : bias;
  {
    const NoGrad no_grad;
    kernels::group_norm_forward(y.queue(), samples(y), mean, invstd, samples(input), gain, offset, eps);
  }
  const bool dweight = wants_gradient(gain), dbias = wants_gradient(offset);
  return differentiable(
      y, "group_norm", {input, gain, offset},
      [=, x = Saved(input), weight = Saved(gain), bias = Saved(offset), mean = Saved(mean), invstd = Saved(invstd)](
          const Tensor& gradient, BackwardContext& context) {
        if (grad_enabled())
          return gradients_by_ops(
              [&](const std::vector<Tensor>& in) { return group_norm_by_ops(in[0], groups, in[1], in[2], eps); },
              {x, weight, bias}, gradient, context);
        const Tensor dy = gradient.contiguous(), dx = empty_like(dy);
        const Tensor dw = dweight ? context.gradient_target(1, {C}, dtype, dy.device()) : Tensor();
        const Tensor db = dbias ? context.gradient_target(2, {C}, dtype, dy.device()) : Tensor();
        kernels::group_norm_backward(dy.queue(), samples(dx), dw, db, samples(dy), samples(x), weight, mean, invstd);
        return Grads{dx, dw, db};
      });
}

Tensor weight_norm(const Tensor& v, const Tensor& g) {
  const OpScope scope("weight_norm");
  WEFT_CHECK(v.defined() && v.is_floating() && v.dim() >= 2, "weight_norm: expected floating directions [O, ...], got ",
             v);
  Shape sizes;
  std::vector<int64_t> dims;
  for (int d = 0; d < v.dim(); ++d) {
    sizes.push_back(d == 0 ? v.size(0) : 1);
    if (d > 0) dims.push_back(d);
  }
  WEFT_CHECK(g.defined() && g.sizes() == sizes, "weight_norm: expected lengths ", sizes, " for directions ", v,
             ", got ", g);
  return mul(v, div(g, norm(v, dims, true)));
}

}  // namespace weft
