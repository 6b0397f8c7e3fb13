// SPDX-License-Identifier: Apache-2.0
#include "nn/conv.h"

#include "core/autocast.h"
#include "core/ops/layers/linear.h"

namespace weft::nn {

Convolution::Convolution(const Sizes& s, const Conv2dWeights& weights) {
  Shape sizes{s.outer};
  bool is_positive = s.in > 0 && s.out > 0;
  std::string kernel;
  for (const int64_t side : s.kernel) {
    is_positive &= side > 0;
    kernel += str(kernel.empty() ? "" : "x", side);
    sizes.push_back(side);
  }
  WEFT_CHECK(is_positive, s.layer, ": expected positive sizes, got in = ", s.in, ", out = ", s.out,
             ", kernel = ", kernel);
  WEFT_CHECK(s.groups > 0 && s.in % s.groups == 0 && s.out % s.groups == 0, s.layer, ": groups = ", s.groups,
             " must divide in = ", s.in, " and out = ", s.out);
  sizes.push_back(s.inner / s.groups);
  weight = Tensor::empty(sizes);
  init_weight_(weight, weights.init);
  weight.requires_grad_();
  if (!weights.bias) return;
  bias = Tensor::empty({s.out});
  init_bias_(bias, weight, weights.init);
  bias.requires_grad_();
}

void Convolution::fields(Visitor& v) {
  v("weight", weight, Layout::ohwi);
  v("bias", bias);
}

int64_t Convolution::flops(const Shape&, const Shape& y) const {
  return 2 * y.numel() * (weight.numel() / weight.size(0));
}

int64_t ConvTranspose1d::flops(const Shape& x, const Shape&) const {
  return 2 * x.numel() * (weight.numel() / weight.size(0));
}

int64_t ConvTranspose2d::flops(const Shape& x, const Shape&) const {
  return 2 * x.numel() * (weight.numel() / weight.size(0));
}

int64_t ConvTranspose3d::flops(const Shape& x, const Shape&) const {
  return 2 * x.numel() * (weight.numel() / weight.size(0));
}

PatchConv2d::PatchConv2d(int64_t patch_edge, int64_t channels, int64_t width)
    : Conv2d(channels, width, {patch_edge, patch_edge}, {.stride = {patch_edge, patch_edge}},
             {.init = Init::transformer}),
      patch(patch_edge) {}

Tensor PatchConv2d::forward(const Tensor& x) const {
  WEFT_CHECK(x.defined() && x.dim() == 4, "PatchEmbed: expected images [N, H, W, C], got ", x);
  const auto [N, H, W, C] = x.dims<4>();
  WEFT_CHECK(H % patch == 0 && W % patch == 0 && H > 0 && W > 0,
             "PatchEmbed: expected images whose sides are multiples of ", patch, ", got ", x);
  const int64_t rows = H / patch, columns = W / patch, length = patch * patch * C;
  const Tensor patches = x.reshape({N, rows, patch, columns, patch, C}).permute({0, 1, 3, 2, 4, 5});
  // The weight is [width, patch, patch, channels] in memory: the order of a patch's pixels. Autocast knows the
  // parameter, not a view of it.
  const Tensor matrix = autocast_low(weight).reshape({weight.size(0), length});
  return linear(patches.reshape({N, rows * columns, length}), matrix, bias);
}

}  // namespace weft::nn
