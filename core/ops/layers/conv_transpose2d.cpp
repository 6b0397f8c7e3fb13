// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/conv_transpose2d.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/conv2d_part.h"
#include "core/trace.h"

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
  const Conv2dOptions conv{.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups};
  const Tensor y =
      conv2d_part("conv_transpose2d", Conv2dPart::x, {Tensor(), w, x}, {x.size(0), P, Q, w.size(3) * o.groups}, conv);
  return bias.defined() ? add(y, bias) : y;
}

}  // namespace weft
