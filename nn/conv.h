// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/conv3d.h"
#include "core/ops/layers/conv_transpose2d.h"
#include "nn/init.h"
#include "nn/module.h"

namespace weft::nn {

/// A Conv2d's parameters, and their initial values.
struct Conv2dWeights {
  bool bias = true;
  Init init = Init::kaiming_uniform;
};

/// The base of convolutions and transposed convolutions of one to three dimensions: a weight [outer, kernel …, inner /
/// groups] and a bias [out]; files hold the weight as [outer, inner / groups, kernel …].
struct Convolution : Module {
  Tensor weight, bias;

  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;

 protected:
  struct Sizes {
    const char* layer;  ///< its name in errors
    int64_t in, out;
    std::vector<int64_t> kernel;
    int64_t groups, outer, inner;
  };
  /// Errors: sizes that are not positive, groups that do not divide in and out.
  Convolution(const Sizes& sizes, const Conv2dWeights& weights);
};

/// y [N, P, Q, out] = convolution of x [N, H, W, in] with weight [out, R, S, in / groups] (OHWI; files hold OIHW).
struct Conv2d : Convolution {
  Conv2dOptions options;

  Conv2d(Integer in, Integer out, Size2d kernel, Conv2dOptions geometry = {}, Conv2dWeights weights = {})
      : Convolution({"Conv2d", in, out, {kernel.h, kernel.w}, geometry.groups, /*outer=*/out, /*inner=*/in}, weights),
        options(geometry) {}
  Tensor forward(const Tensor& x) const override { return conv2d(x, weight, bias, options); }
};

/// y [N, P, out] = convolution of x [N, L, in] with weight [out, R, in / groups]; files hold [out, in / groups, R].
struct Conv1d : Convolution {
  Conv1dOptions options;

  Conv1d(Integer in, Integer out, Integer kernel, Conv1dOptions geometry = {}, Conv2dWeights weights = {})
      : Convolution({"Conv1d", in, out, {kernel}, geometry.groups, /*outer=*/out, /*inner=*/in}, weights),
        options(geometry) {}
  Tensor forward(const Tensor& x) const override { return conv1d(x, weight, bias, options); }
};

/// y [N, E, P, Q, out] = convolution of volumes x [N, D, H, W, in] with weight [out, T, R, S, in / groups]; files hold
/// [out, in / groups, T, R, S].
struct Conv3d : Convolution {
  Conv3dOptions options;

  Conv3d(Integer in, Integer out, Size3d kernel, Conv3dOptions geometry = {}, Conv2dWeights weights = {})
      : Convolution({"Conv3d", in, out, {kernel.d, kernel.h, kernel.w}, geometry.groups, /*outer=*/out, /*inner=*/in},
                    weights),
        options(geometry) {}
  Tensor forward(const Tensor& x) const override { return conv3d(x, weight, bias, options); }
};

/// y [N, P, Q, out] = transposed convolution of x [N, H, W, in] with weight [in, R, S, out / groups]; files hold
/// [in, out / groups, R, S], as PyTorch does.
struct ConvTranspose2d : Convolution {
  ConvTranspose2dOptions options;

  ConvTranspose2d(Integer in, Integer out, Size2d kernel, ConvTranspose2dOptions geometry = {},
                  Conv2dWeights weights = {})
      : Convolution({"ConvTranspose2d", in, out, {kernel.h, kernel.w}, geometry.groups, /*outer=*/in, /*inner=*/out},
                    weights),
        options(geometry) {}
  Tensor forward(const Tensor& x) const override { return conv_transpose2d(x, weight, bias, options); }
  int64_t flops(const Shape& x, const Shape& y) const override;
};

/// As above for sequences: x [N, L, in], weight [in, K, out / groups].
struct ConvTranspose1d : Convolution {
  ConvTranspose1dOptions options;

  ConvTranspose1d(Integer in, Integer out, Integer kernel, ConvTranspose1dOptions geometry = {},
                  Conv2dWeights weights = {})
      : Convolution({"ConvTranspose1d", in, out, {kernel}, geometry.groups, /*outer=*/in, /*inner=*/out}, weights),
        options(geometry) {}
  Tensor forward(const Tensor& x) const override { return conv_transpose1d(x, weight, bias, options); }
  int64_t flops(const Shape& x, const Shape& y) const override;
};

/// As above for volumes: x [N, D, H, W, in], weight [in, T, R, S, out / groups].
struct ConvTranspose3d : Convolution {
  ConvTranspose3dOptions options;

  ConvTranspose3d(Integer in, Integer out, Size3d kernel, ConvTranspose3dOptions geometry = {},
                  Conv2dWeights weights = {})
      : Convolution({"ConvTranspose3d",
                     in,
                     out,
                     {kernel.d, kernel.h, kernel.w},
                     geometry.groups,
                     /*outer=*/in,
                     /*inner=*/out},
                    weights),
        options(geometry) {}
  Tensor forward(const Tensor& x) const override { return conv_transpose3d(x, weight, bias, options); }
  int64_t flops(const Shape& x, const Shape& y) const override;
};

/// A convolution whose stride is its size: x [N, H, W, channels], H and W multiples of `patch`, to
/// [N, H / patch * W / patch, width]. Its windows do not overlap, so a single GEMM computes the result.
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
