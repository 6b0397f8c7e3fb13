// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "core/ops/conv2d.h"
#include "nn/init.h"
#include "nn/module.h"

namespace weft::nn {

/// What a Conv2d learns, and what it begins with.
struct Conv2dWeights {
  bool bias = true;
  Init init = Init::kaiming_uniform;
};

/// Of a convolution or a transposed one, of one to three dimensions; `layer` is its name in errors.
struct ConvSizes {
  const char* layer;
  int64_t in, out;
  std::vector<int64_t> kernel;
  int64_t groups, outer, inner;
};
/// Checks the sizes of a (transposed) convolution, and gives `weight` its sizes [outer, kernel …, inner / groups] and
/// first values, `bias` [out] too where it has one. Errors: sizes that are not positive, groups that do not divide in
/// and out.
void make_conv_weights(Tensor& weight, Tensor& bias, const ConvSizes& sizes, const Conv2dWeights& weights);

/// y [N, P, Q, out] = convolution of x [N, H, W, in] with weight [out, R, S, in / groups] (OHWI; files hold OIHW).
struct Conv2d : Module {
  Tensor weight, bias;
  Conv2dOptions options;

  Conv2d(int64_t in, int64_t out, Size2d kernel, Conv2dOptions options = {}, Conv2dWeights weights = {});
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;
};

}  // namespace weft::nn
