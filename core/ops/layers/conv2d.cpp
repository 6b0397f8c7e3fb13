// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/conv2d.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/layers/conv2d_part.h"
#include "core/ops/layers/image.h"
#include "core/ops/reduce.h"
#include "core/trace.h"
#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/conv2d_size.h"

namespace weft {
namespace {

void check(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& o) {
  WEFT_CHECK(x.defined() && x.dim() == 4, "conv2d: expected an input [N, H, W, C], got ", x);
  WEFT_CHECK(w.defined() && w.dim() == 4, "conv2d: expected a weight [O, R, S, C / groups], got ", w);
  WEFT_CHECK(o.groups >= 1 && w.size(0) % o.groups == 0, "conv2d: ", w.size(0), " output channels of weight ", w,
             " do not divide into ", o.groups, " groups");
  WEFT_CHECK(w.size(3) * o.groups == x.size(3), "conv2d: weight ", w.view(), " wants ", w.size(3) * o.groups,
             " input channels, input ", x.view(), " has ", x.size(3), " (groups=", o.groups, "). Is the input NHWC?");
  WEFT_CHECK(o.stride.h >= 1 && o.stride.w >= 1 && o.dilation.h >= 1 && o.dilation.w >= 1 && o.padding.h >= 0 &&
                 o.padding.w >= 0,
             "conv2d: expected stride and dilation of at least 1 and no negative padding, got stride ", o.stride.h, "x",
             o.stride.w, ", dilation ", o.dilation.h, "x", o.dilation.w, ", padding ", o.padding.h, "x", o.padding.w);
  WEFT_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == w.size(0)), "conv2d: expected a bias [", w.size(0),
             "], got ", bias);
  check_image_layout("conv2d", x);
  WEFT_CHECK(w.device() == x.device() && (!bias.defined() || bias.device() == x.device()),
             "conv2d: expected tensors on one device, got input ", x, ", weight ", w, ", bias ", bias);
}

/// The operands of conv2d's ops: checked, of one dtype (under autocast the low dtype), contiguous, y not written.
struct Conv2dOperands {
  Tensor x, w, bias, y;
};

Conv2dOperands conv2d_operands(const Tensor& input, const Tensor& weight, const Tensor& input_bias,
                               const Conv2dOptions& options) {
  check(input, weight, input_bias, options);
  const Tensor x = autocast_low(input).contiguous(), w = autocast_low(weight).contiguous();
  const Tensor bias = autocast_low(input_bias);
  WEFT_CHECK(x.is_floating() && x.dtype() == w.dtype() && (!bias.defined() || bias.dtype() == x.dtype()),
             "conv2d: expected one floating dtype, got input ", x, ", weight ", w, ", bias ", bias);
  const auto [P, Q] = kernels::conv2d_output_size({x.size(1), x.size(2)}, {w.size(1), w.size(2)}, options);
  WEFT_CHECK(P > 0 && Q > 0, "conv2d: the kernel of weight ", w.view(), " is larger than the padded input ", x.view());
  return {x, w, bias, Tensor::empty({x.size(0), P, Q, w.size(0)}, x.dtype(), x.device())};
}

/// Records how the gradients of x, w and bias follow from y's.
Tensor recorded(const Conv2dOperands& operands, DType w_dtype, const Conv2dOptions& options) {
  const auto& [x, w, bias, y] = operands;
  const bool dx = wants_gradient(x), dw = wants_gradient(w), db = wants_gradient(bias);
  if (!dx && !dw && !db) return y;
  return differentiable(y, "conv2d", {x, w, bias},
                        [options, db, x_sizes = x.sizes(), w_sizes = w.sizes(), w_dtype, x = dw ? Saved(x) : Saved(),
                         w = dx ? Saved(w) : Saved()](const Tensor& gradient, BackwardContext& context) {
                          const Tensor dy = gradient.contiguous();
                          Grads grads(3);
                          if (grad_enabled()) {
                            if (w && context.wants(0))
                              grads[0] = conv2d_part("conv2d", Conv2dPart::x, {Tensor(), w, dy}, x_sizes, options);
                            if (x && context.wants(1))
                              grads[1] = conv2d_part("conv2d", Conv2dPart::w, {x, Tensor(), dy}, w_sizes, options);
                            if (db) grads[2] = sum(dy, {0, 1, 2});
                            return grads;
                          }
                          if (w && context.wants(0)) {
                            grads[0] = Tensor::empty(x_sizes, dy.dtype(), dy.device());
                            const Tensor more = context.arrived_gradient(0, x_sizes, dy.dtype());
                            kernels::conv2d_backward_input(dy.queue(), grads[0], dy, w, more, options);
                          }
                          if (x && context.wants(1)) {
                            grads[1] = context.gradient_target(1, w_sizes, w_dtype, dy.device());
                            kernels::conv2d_backward_weight(dy.queue(), grads[1], dy, x, options);
                          }
                          if (db) grads[2] = sum(dy, {0, 1, 2});
                          return grads;
                        });
}

}  // namespace

Tensor conv2d_part(const char* op, Conv2dPart part, const std::array<Tensor, 3>& tensors, const Shape& sizes,
                   const Conv2dOptions& options) {
  const auto& [x, w, y] = tensors;
  const size_t made = static_cast<size_t>(part), a = made == 0 ? 1 : 0, b = made == 2 ? 1 : 2;  // from a and b
  const Tensor result = Tensor::empty(sizes, tensors[a].dtype(), tensors[a].device());
  switch (part) {
    case Conv2dPart::x:
      kernels::conv2d_backward_input(result.queue(), result, y, w, {}, options);
      break;
    case Conv2dPart::w:
      kernels::conv2d_backward_weight(result.queue(), result, y, x, options);
      break;
    case Conv2dPart::y:
      kernels::conv2d_forward(result.queue(), result, x, w, {}, options);
  }
  const bool da = wants_gradient(tensors[a]), db = wants_gradient(tensors[b]);
  if (!da && !db) return result;
  return differentiable(
      result, op, {tensors[a], tensors[b]},
      [op, made, a, b, options, a_sizes = tensors[a].sizes(), b_sizes = tensors[b].sizes(),
       saved_a = db ? Saved(tensors[a]) : Saved(), saved_b = da ? Saved(tensors[b]) : Saved()](const Tensor& gradient) {
        std::array<Tensor, 3> parts;
        parts[made] = gradient.contiguous();
        parts[a] = saved_a;
        parts[b] = saved_b;
        Grads grads(2);
        if (saved_b) grads[0] = conv2d_part(op, static_cast<Conv2dPart>(a), parts, a_sizes, options);
        if (saved_a) grads[1] = conv2d_part(op, static_cast<Conv2dPart>(b), parts, b_sizes, options);
        return grads;
      });
}

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& input_bias, const Conv2dOptions& options) {
  const OpScope scope("conv2d");
  const Conv2dOperands operands = conv2d_operands(input, weight, input_bias, options);
  const auto& [x, w, bias, y] = operands;
  kernels::conv2d_forward(y.queue(), y, x, w, bias, options);
  return recorded(operands, weight.dtype(), options);
}

Conv2dStatistics conv2d_statistics(const Tensor& input, const Tensor& weight, const Tensor& input_bias,
                                   const Conv2dOptions& options) {
  const OpScope scope("conv2d");
  const Conv2dOperands operands = conv2d_operands(input, weight, input_bias, options);
  const auto& [x, w, bias, y] = operands;
  if (y.numel() == 0) return {recorded(operands, weight.dtype(), options), {}};
  const Tensor part = Tensor::empty({2 * y.size(3) + 1}, y.dtype() == DType::f64 ? DType::f64 : DType::f32, y.device());
  kernels::conv2d_statistics(y.queue(), y, part, x, w, bias, options);
  return {recorded(operands, weight.dtype(), options), part};
}

Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv1dOptions& options) {
  const OpScope scope("conv1d");
  WEFT_CHECK(x.defined() && x.dim() == 3, "conv1d: expected an input [N, L, C], got ", x);
  WEFT_CHECK(w.defined() && w.dim() == 3, "conv1d: expected a weight [O, R, C / groups], got ", w);
  return conv2d(x.unsqueeze(1), w.unsqueeze(1), bias,
                {.stride = {1, options.stride},
                 .padding = {0, options.padding},
                 .dilation = {1, options.dilation},
                 .groups = options.groups})
      .squeeze(1);
}

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
