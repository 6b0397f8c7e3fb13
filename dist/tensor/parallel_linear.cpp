// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/parallel_linear.h"

#include "core/autocast.h"
#include "core/ops/binary.h"
#include "core/ops/layers/linear.h"
#include "dist/tensor/parallel_region.h"

namespace weft::dist {
namespace {

void check_divides(const char* who, const char* what, int64_t size, const ProcessGroupPtr& group) {
  WEFT_CHECK(group, who, ": expected a group, got none");
  WEFT_CHECK(size % group->size() == 0, who, ": ", what, " of ", size, " does not divide by ", group->size(),
             " model ranks");
}

/// Has its gradient in the dtype of the products, which halves the all_reduce under autocast.
Tensor into_region(const Tensor& x, const ColumnParallelLinear& layer, int64_t tokens) {
  const Tensor low = autocast_low(x);
  return layer.gathers ? gather_into_region(low, layer.group, tokens) : copy_to_region(low, layer.group);
}

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(const nn::Linear& whole, ProcessGroupPtr ranks, int64_t count)
    : group(std::move(ranks)), stretches(count) {
  WEFT_CHECK(stretches > 0, "ColumnParallelLinear: expected at least one stretch, got ", stretches);
  check_divides("ColumnParallelLinear", "an output", whole.weight.size(0) / stretches, group);
  weight = parameter_part(whole.weight, partition("weight"), *group);
  bias = parameter_part(whole.bias, partition("bias"), *group);
}

Tensor ColumnParallelLinear::forward(const Tensor& x, int64_t tokens) const {
  return linear(into_region(x, *this, tokens), weight, bias);
}

Tensor ColumnParallelLinear::operator()(const Tensor& x, int64_t tokens) const {
  return with_hooks(x, [&] { return forward(x, tokens); });
}

Tensor ColumnParallelLinear::forward_gelu(const Tensor& x, Gelu approximate, int64_t tokens) const {
  return with_hooks(x, [&] { return linear_gelu(into_region(x, *this, tokens), weight, bias, approximate); });
}

void ColumnParallelLinear::fields(nn::Visitor& v) {
  v("weight", weight);
  v("bias", bias);
}

int64_t ColumnParallelLinear::flops(const Shape&, const Shape& y) const { return 2 * y.numel() * weight.size(1); }

RowParallelLinear::RowParallelLinear(const nn::Linear& whole, ProcessGroupPtr ranks) : group(std::move(ranks)) {
  check_divides("RowParallelLinear", "an input", whole.weight.size(1), group);
  weight = parameter_part(whole.weight, partition("weight"), *group);
  bias = parameter_part(whole.bias, partition("bias"), *group);
}

Tensor RowParallelLinear::forward(const Tensor& x) const {
  if (group->size() == 1) return linear(x, weight, bias);
  const Tensor part = linear(x, weight);
  const Tensor y = scatters ? scatter_from_region(part, group) : reduce_from_region(part, group);
  if (!bias.defined()) return y;
  const Tensor b = autocast_low(bias);
  return y + (scatters ? copy_to_region(b, group) : b);
}

void RowParallelLinear::fields(nn::Visitor& v) {
  v("weight", weight);
  v("bias", bias);
}

int64_t RowParallelLinear::flops(const Shape&, const Shape& y) const {
  return 2 * y.numel() * weight.size(1) * (scatters ? group->size() : 1);
}

}  // namespace weft::dist
