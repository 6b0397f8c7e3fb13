// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/conv3d.h"

#include <vector>

#include "core/autocast.h"
#include "core/ops/concat.h"
#include "core/ops/layers/conv2d.h"
#include "core/trace.h"

namespace weft {
namespace {

void check(const Tensor& x, const Tensor& w, const Conv3dOptions& o) {
  WEFT_CHECK(x.defined() && x.dim() == 5 && x.is_floating(), "conv3d: expected an input [N, D, H, W, C], got ", x);
  WEFT_CHECK(w.defined() && w.dim() == 5, "conv3d: expected a weight [O, T, R, S, C / groups], got ", w);
  WEFT_CHECK(o.groups >= 1 && w.size(4) * o.groups == x.size(4), "conv3d: weight ", w.view(), " wants ",
             w.size(4) * o.groups, " input channels, input ", x.view(), " has ", x.size(4), " (groups=", o.groups,
             "). Is the input NDHWC?");
  WEFT_CHECK(o.stride.d >= 1 && o.dilation.d >= 1 && o.padding.d >= 0,
             "conv3d: expected stride and dilation of at least 1 and no negative padding");
  WEFT_CHECK(x.size(1) + 2 * o.padding.d >= o.dilation.d * (w.size(1) - 1) + 1, "conv3d: weight ", w.view(),
             " is deeper than input ", x.view(), " with padding ", o.padding.d);
}

}  // namespace

Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv3dOptions& o) {
  const OpScope scope("conv3d");
  check(input, weight, o);
  const Tensor x = autocast_low(input), w = autocast_low(weight);
  const auto [N, D, H, W, C] = x.dims<5>();
  const auto [O, T, R, S, inner] = w.dims<5>();
  const int64_t depth = (D + 2 * o.padding.d - o.dilation.d * (T - 1) - 1) / o.stride.d + 1;

  // Depths in runs of `stride`: depth e of y sees, by slice t of the weight, place (t dilation) % stride of run
  // e + (t dilation) / stride.
  const int64_t runs = (D + 2 * o.padding.d + o.stride.d - 1) / o.stride.d;
  const Tensor padded = pad(x, 1, o.padding.d, runs * o.stride.d - D - o.padding.d);
  const Tensor in_runs = padded.reshape({N, runs, o.stride.d, H * W, o.groups, inner});
  std::vector<Tensor> slices;
  for (int64_t t = 0; t < T; ++t) {
    const int64_t offset = t * o.dilation.d;
    slices.push_back(in_runs.slice(1, offset / o.stride.d, depth).select(2, offset % o.stride.d));
  }
  // Channels in the order group, slice, channel; the weight's likewise.
  const Tensor images = concat(slices, -1).reshape({N * depth, H, W, T * C});
  const Tensor filters = w.permute({0, 2, 3, 1, 4}).reshape({O, R, S, T * inner});
  const Tensor y = conv2d(images, filters, bias,
                          {.stride = {o.stride.h, o.stride.w},
                           .padding = {o.padding.h, o.padding.w},
                           .dilation = {o.dilation.h, o.dilation.w},
                           .groups = o.groups});
  return y.reshape({N, depth, y.size(1), y.size(2), O});
}

}  // namespace weft
