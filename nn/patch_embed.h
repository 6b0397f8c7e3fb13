// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/conv2d.h"

namespace weft::nn {

/// A convolution whose stride is its size: x [N, H, W, channels], H and W multiples of `patch`, to
/// [N, H / patch * W / patch, width]. Its windows do not overlap, so it is one matrix product.
struct PatchConv2d : Conv2d {
  int64_t patch;

  PatchConv2d(int64_t patch, int64_t channels, int64_t width);
  Tensor forward(const Tensor& x) const override;
  std::string kind() const override { return "Conv2d"; }
};

/// Images cut into squares of patch x patch pixels, each one a token (Dosovitskiy et al. 2020): x [N, H, W, channels]
/// to [N, patches, width].
struct PatchEmbed : Module {
  PatchConv2d proj;

  PatchEmbed(int64_t patch, int64_t channels, int64_t width) : proj(patch, channels, width) {}
  Tensor forward(const Tensor& x) const override { return proj(x); }
  void fields(Visitor& v) override { v("proj", proj); }
};

}  // namespace weft::nn
