// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/parallel_block.h"

#include "core/ops/attention.h"
#include "core/ops/binary.h"

namespace weft::dist {
namespace {

constexpr nn::LinearOptions kLinear{.init = nn::Init::transformer};

int64_t checked_heads(int64_t heads, int64_t width, const ProcessGroupPtr& group) {
  WEFT_CHECK(heads > 0 && width % heads == 0,
             "ParallelAttention: expected a width that is a multiple of the heads, got ", width, " and ", heads);
  WEFT_CHECK(group && heads % group->size() == 0, "ParallelAttention: ", heads, " heads do not divide by ",
             group ? group->size() : 0, " model ranks");
  return heads;
}

}  // namespace

ParallelAttention::ParallelAttention(int64_t width, int64_t head_count, const ProcessGroupPtr& group)
    : heads(checked_heads(head_count, width, group)),
      qkv(width, 3 * width, group, {.linear = kLinear, .stretches = 3}),
      proj(width, width, group, kLinear) {}

Tensor ParallelAttention::forward(const Tensor& x) const {
  const auto [N, tokens, width] = x.dims<3>();
  const int64_t own = heads / qkv.group->size(), length = width / heads;
  const Tensor y = attention_packed(qkv(x).reshape({N, tokens, 3, own, length}));
  return proj(y.reshape({N, tokens, own * length}));
}

void ParallelAttention::fields(nn::Visitor& v) {
  v("qkv", qkv);
  v("proj", proj);
}

int64_t ParallelAttention::flops(const Shape& x, const Shape&) const {
  return 4 * x.numel() * x[1] / qkv.group->size();
}

ParallelMlp::ParallelMlp(int64_t width, int64_t hidden, const ProcessGroupPtr& group)
    : fc1(width, hidden, group, {.linear = kLinear}), fc2(hidden, width, group, kLinear) {}

Tensor ParallelMlp::forward(const Tensor& x) const { return fc2(fc1.forward_gelu(x)); }

void ParallelMlp::fields(nn::Visitor& v) {
  v("fc1", fc1);
  v("fc2", fc2);
}

ParallelBlock::ParallelBlock(const ParallelBlockOptions& options, const ProcessGroupPtr& group)
    : norm1(options.width, options.eps),
      attn(options.width, options.heads, group),
      norm2(options.width, options.eps),
      mlp(options.width, options.hidden, group) {}

Tensor ParallelBlock::forward(const Tensor& x) const {
  const NormedSum stream = norm2.add(x, attn(norm1(x)));
  return stream.sum + mlp(stream.y);
}

void ParallelBlock::fields(nn::Visitor& v) {
  v("norm1", norm1);
  v("attn", attn);
  v("norm2", norm2);
  v("mlp", mlp);
}

}  // namespace weft::dist
