// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/conv2d.h"

namespace weft::nn {

/// Pictures cut into squares of patch x patch pixels, each one a token (Dosovitskiy et al. 2020): x [N, H, W, channels]
/// to [N, H / patch * W / patch, width]. H and W are multiples of patch. A convolution whose stride is its size; since
/// its windows do not overlap, it is computed as one matrix product.
struct PatchEmbed : Module {
  int64_t patch;
  Conv2d proj;

  PatchEmbed(int64_t patch, int64_t channels, int64_t width);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override { v("proj", proj); }
};

}  // namespace weft::nn
