// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv_transpose2d.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/trace.h"
#include "kernels/conv2d.h"

namespace weft {
namespace {

void check(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvTranspose2dOptions& o) {
  WEFT_CHECK(x.defined() && x.dim() == 4 && x.is_floating(), "conv_transpose2d: expected an input [N, H, W, C], got ",
             x);
  WEFT_CHECK(w.defined() && w.dim() == 4, "conv_transpose2d: expected a weight [C, R, S, O / groups], got ", w);
  WEFT_CHECK(o.groups >= 1 && w.size(0) % o.groups == 0, "conv_transpose2d: ", w.size(0), " input channels of weight ",
             w, " do not divide into ", o.groups, " groups");
  WEFT_CHECK(w.size(0) == x.size(3), "conv_transpose2d: weight ", w.view(), " wants ", w.size(0),
             " input channels, input ", x.view(), " has ", x.size(3), ". Is the input NHWC?");
  WEFT_CHECK(o.stride.h >= 1 && o.stride.w >= 1 && o.dilation.h >= 1 && o.dilation.w >= 1 && o.padding.h >= 0 &&
                 o.padding.w >= 0,
             "conv_transpose2d: expected stride and dilation of at least 1 and no negative padding");
  WEFT_CHECK(o.output_padding.h >= 0 && o.output_padding.w >= 0 && o.output_padding.h < o.stride.h &&
                 o.output_padding.w < o.stride.w,
             "conv_transpose2d: expected an output_padding below the stride ", o.stride.h, "x", o.stride.w, ", got ",
             o.output_padding.h, "x", o.output_padding.w);
  const int64_t O = w.size(3) * o.groups;
  WEFT_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == O), "conv_transpose2d: expected a bias [", O,
             "], got ", bias);
  WEFT_CHECK(w.device() == x.device() && (!bias.defined() || bias.device() == x.device()),
             "conv_transpose2d: expected tensors on one device, got input ", x, ", weight ", w, ", bias ", bias);
}

}  // namespace

Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& input_bias,
                        const ConvTranspose2dOptions& o) {
  const OpScope scope("conv_transpose2d");
  check(input, weight, input_bias, o);
  const Tensor x = autocast_low(input).contiguous(), w = autocast_low(weight).contiguous();
  const Tensor bias = autocast_low(input_bias);
  WEFT_CHECK(x.dtype() == w.dtype() && (!bias.defined() || bias.dtype() == x.dtype()),
             "conv_transpose2d: expected one floating dtype, got input ", x, ", weight ", w, ", bias ", bias);
  const int64_t P =
      (x.size(1) - 1) * o.stride.h - 2 * o.padding.h + o.dilation.h * (w.size(1) - 1) + o.output_padding.h + 1;
  const int64_t Q =
      (x.size(2) - 1) * o.stride.w - 2 * o.padding.w + o.dilation.w * (w.size(2) - 1) + o.output_padding.w + 1;
  WEFT_CHECK(P > 0 && Q > 0, "conv_transpose2d: the padding takes all of the output of ", x.view(), " with weight ",
             w.view());
  const kernels::Conv2dArguments conv{o.stride, o.padding, o.dilation, o.groups};
  const Tensor sums = Tensor::empty({x.size(0), P, Q, w.size(3) * o.groups}, x.dtype(), x.device());
  kernels::conv2d_backward_input(sums.queue(), sums, x, w, {}, conv);
  Tensor y = sums;
  const bool dx = wants_gradient(x), dw = wants_gradient(w);
  if (dx || dw)
    y = differentiable(sums, "conv_transpose2d", {x, w},
                       [conv, x_sizes = x.sizes(), w_sizes = w.sizes(), x = dw ? Saved(x) : Saved(),
                        w = dx ? Saved(w) : Saved()](const Tensor& gradient) {
                         const Tensor dy = gradient.contiguous();
                         Grads grads(2);
                         if (w) {
                           grads[0] = Tensor::empty(x_sizes, dy.dtype(), dy.device());
                           kernels::conv2d_forward(dy.queue(), grads[0], dy, w, {}, conv);
                         }
                         if (x) {
                           grads[1] = Tensor::empty(w_sizes, dy.dtype(), dy.device());
                           kernels::conv2d_backward_weight(dy.queue(), grads[1], x, dy, conv);
                         }
                         return grads;
                       });
  return bias.defined() ? add(y, bias) : y;
}

}  // namespace weft
