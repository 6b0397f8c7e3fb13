// SPDX-License-Identifier: Apache-2.0
#include "core/ops/group_norm.h"

#include "core/ops/add.h"
#include "core/ops/layer_norm.h"
#include "core/ops/mul.h"
#include "core/trace.h"

namespace weft {

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const OpScope scope("group_norm");
  WEFT_CHECK(x.defined() && x.dim() >= 2 && x.is_floating(), "group_norm: expected a floating tensor [N, ..., C], got ",
             x);
  const int64_t N = x.size(0), C = x.size(-1);
  WEFT_CHECK(groups >= 1 && C % groups == 0, "group_norm: ", C, " channels of ", x, " do not divide into ", groups,
             " groups");
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  for (const Tensor& v : {weight, bias})
    WEFT_CHECK(!v.defined() || (v.dim() == 1 && v.size(0) == C && v.dtype() == dtype),
               "group_norm: expected weight and bias ", dtype, "[", C, "], got ", weight, " and ", bias);
  const int64_t positions = N && C ? x.numel() / (N * C) : 0;
  const Tensor rows = x.reshape({N, positions, groups, C / groups}).transpose(1, 2);  // [N, group, position, channel]
  const Tensor normed = layer_norm(rows.reshape({N, groups, positions * (C / groups)}), {}, {}, eps);
  Tensor y = normed.reshape({N, groups, positions, C / groups}).transpose(1, 2).reshape(x.sizes());
  if (weight) y = mul(y, weight.to(y.dtype()));
  if (bias) y = add(y, bias.to(y.dtype()));
  return y;
}

}  // namespace weft
