// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/conv_transpose2d.h"
#include "nn/conv2d.h"

namespace weft::nn {

/// y [N, P, Q, out] = transposed convolution of x [N, H, W, in] with weight [in, R, S, out / groups]; files hold
/// [in, out / groups, R, S], as PyTorch does.
struct ConvTranspose2d : Module {
  Tensor weight, bias;
  ConvTranspose2dOptions options;

  ConvTranspose2d(int64_t in, int64_t out, Size2d kernel, ConvTranspose2dOptions options = {},
                  Conv2dWeights weights = {});
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;
};

}  // namespace weft::nn
