// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/unary.h"
#include "nn/init.h"
#include "nn/module.h"

namespace weft::nn {

struct LinearOptions {
  bool bias = true;
  Init init = Init::kaiming_uniform;
};

/// y = x weight^T + bias over the last dimension: x [..., in], weight [out, in], bias [out].
struct Linear : Module {
  Tensor weight, bias;

  Linear(int64_t in, int64_t out, LinearOptions options = {});
  Tensor forward(const Tensor& x) const override;
  /// gelu(forward(x)) in one pass over the result.
  Tensor forward_gelu(const Tensor& x, Gelu approximate = Gelu::erf) const;
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;
};

}  // namespace weft::nn
