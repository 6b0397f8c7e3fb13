// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/conv_transpose2d.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
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

Tensor conv_transpose1d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvTranspose1dOptions& o) {
  const OpScope scope("conv_transpose1d");
  WEFT_CHECK(x.defined() && w.defined() && x.dim() == 3 && w.dim() == 3,
             "conv_transpose1d: expected an input [N, L, C] and a weight [C, K, O / groups], got ", x, " and ", w);
  return conv_transpose2d(x.unsqueeze(2), w.unsqueeze(2), bias,
                          {.stride = {o.stride, 1},
                           .padding = {o.padding, 0},
                           .dilation = {o.dilation, 1},
                           .output_padding = {o.output_padding, 0},
                           .groups = o.groups})
      .squeeze(2);
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvTranspose3dOptions& o) {
  const OpScope scope("conv_transpose3d");
  WEFT_CHECK(x.defined() && w.defined() && x.dim() == 5 && w.dim() == 5,
             "conv_transpose3d: expected an input [N, D, H, W, C] and a weight [C, T, R, S, O / groups], got ", x,
             " and ", w);
  const auto [N, D, H, W, C] = x.dims<5>();
  const int64_t T = w.size(1);
  const int64_t depth =
      (D - 1) * o.stride.d + o.dilation.d * (T - 1) + o.output_padding.d + 1;  // before the padding goes
  WEFT_CHECK(T >= 1 && D >= 1 && o.stride.d >= 1 && o.dilation.d >= 1 && o.padding.d >= 0 && o.output_padding.d >= 0 &&
                 o.output_padding.d < std::max(o.stride.d, o.dilation.d) && depth > 2 * o.padding.d,
             "conv_transpose3d: expected a depth that leaves output, got ", x, ", weight ", w, ", stride ", o.stride.d,
             ", padding ", o.padding.d, ", dilation ", o.dilation.d, ", output_padding ", o.output_padding.d);
  Tensor y;
  for (int64_t t = 0; t < T; ++t) {
    const Tensor image = conv_transpose2d(x.reshape({N * D, H, W, C}), w.select(1, t), {},
                                          {.stride = {o.stride.h, o.stride.w},
                                           .padding = {o.padding.h, o.padding.w},
                                           .dilation = {o.dilation.h, o.dilation.w},
                                           .output_padding = {o.output_padding.h, o.output_padding.w},
                                           .groups = o.groups});
    const int64_t P = image.size(1), Q = image.size(2), O = image.size(3), first = t * o.dilation.d;
    // Slices at a distance of the stride, from `first` on.
    const Tensor apart =
        pad(image.reshape({N, D, 1, P, Q, O}), 2, 0, o.stride.d - 1).reshape({N, D * o.stride.d, P, Q, O});
    const int64_t used = (D - 1) * o.stride.d + 1;
    const Tensor placed = pad(apart.slice(1, 0, used), 1, first, depth - first - used);
    y = y.defined() ? add(y, placed) : placed;
  }
  y = y.slice(1, o.padding.d, depth - 2 * o.padding.d);
  WEFT_CHECK(!bias.defined() || bias.sizes() == Shape{y.size(4)}, "conv_transpose3d: expected a bias [", y.size(4),
             "], got ", bias);
  return bias.defined() ? add(y, bias.to(y.dtype())) : y;
}

}  // namespace weft
