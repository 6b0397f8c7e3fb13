// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/parallel_block.h"

#include "core/ops/binary.h"
#include "core/ops/layers/attention.h"
#include "core/random.h"

namespace weft::dist {
namespace {

constexpr nn::LinearOptions kLinear{.init = nn::Init::transformer};

int64_t checked_heads(int64_t heads, const ProcessGroupPtr& group) {
  WEFT_CHECK(group && heads % group->size() == 0, "ParallelAttention: ", heads, " heads do not divide by ",
             group ? group->size() : 0, " model ranks");
  return heads;
}

}  // namespace

ParallelAttention::ParallelAttention(const nn::MultiHeadAttention& whole, const ProcessGroupPtr& group)
    : heads(checked_heads(whole.heads, group)),
      dropout(whole.dropout),
      qkv(whole.qkv, group, 3),
      proj(whole.proj, group) {}

Tensor ParallelAttention::forward(const Tensor& x, const AttentionOptions& options) const {
  const auto [N, tokens, width] = x.dims<3>();
  const int64_t ranks = qkv.group->size(), rank = qkv.group->rank(), own = heads / ranks, length = width / heads;
  AttentionOptions with_dropout = options;
  with_dropout.dropout = is_training() ? dropout : 0;
  const Tensor packed = qkv(x).reshape({N, tokens, 3, own, length});
  // The ranks' Philox blocks lie one after another: four weights of a head share one (kernels/contracts/attention.h).
  const int64_t pairs = (tokens + 1) / 2, blocks = with_dropout.dropout > 0 ? N * own * pairs * pairs : 0;
  Generator& random = generator(x.device());
  random.take(static_cast<uint64_t>(rank * blocks));
  const Tensor y = attention_packed(packed, with_dropout);
  random.take(static_cast<uint64_t>((ranks - 1 - rank) * blocks));
  return proj(y.reshape({N, tokens, own * length}));
}

Tensor ParallelAttention::operator()(const Tensor& x, const AttentionOptions& options) const {
  return with_hooks(x, [&] { return forward(x, options); });
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

ParallelGptBlock::ParallelGptBlock(const nn::GptBlock& whole, const ProcessGroupPtr& group)
    : ln_1(whole.ln_1.weight.size(0), whole.ln_1.eps),
      attn(whole.attn, group),
      ln_2(whole.ln_2.weight.size(0), whole.ln_2.eps),
      c_fc(whole.c_fc, group),
      c_proj(whole.c_proj, group),
      dropout(whole.dropout.p),
      gelu(whole.gelu) {
  ln_1.weight = whole.ln_1.weight, ln_1.bias = whole.ln_1.bias;
  ln_2.weight = whole.ln_2.weight, ln_2.bias = whole.ln_2.bias;
}

Tensor ParallelGptBlock::forward(const Tensor& x) const {
  const NormedSum stream = ln_2.add(x, dropout(attn(ln_1(x), {.causal = true})));
  return stream.sum + dropout(c_proj(c_fc.forward_gelu(stream.y, gelu)));
}

void ParallelGptBlock::fields(nn::Visitor& v) {
  v("ln_1", ln_1);
  v("attn", attn);
  v("ln_2", ln_2);
  v("mlp.c_fc", c_fc);
  v("mlp.c_proj", c_proj);
  v("dropout", dropout);
}

void divide_blocks(nn::Gpt& model, const ProcessGroupPtr& group) {
  if (group->size() == 1) return;
  for (std::shared_ptr<nn::Module>& block : model.h) {
    const auto* const whole = dynamic_cast<const nn::GptBlock*>(block.get());
    WEFT_CHECK(whole, "divide_blocks: expected whole blocks, got ", block->kind());
    block = std::make_shared<ParallelGptBlock>(*whole, group);
  }
}

}  // namespace weft::dist
