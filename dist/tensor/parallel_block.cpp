// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/parallel_block.h"

#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/layers/attention.h"
#include "core/random.h"
#include "dist/tensor/parallel_region.h"

namespace weft::dist {
namespace {

constexpr nn::LinearOptions kLinear{.init = nn::Init::transformer};

int64_t checked_heads(int64_t heads, const ProcessGroupPtr& group) {
  WEFT_CHECK(group, "ParallelAttention: expected a group, got none");
  WEFT_CHECK(heads % group->size() == 0, "ParallelAttention: ", heads, " heads do not divide by ", group->size(),
             " model ranks");
  return heads;
}

}  // namespace

ParallelAttention::ParallelAttention(const nn::MultiHeadAttention& whole, const ProcessGroupPtr& group)
    : heads(checked_heads(whole.heads, group)),
      dropout(whole.dropout),
      qkv(whole.qkv, group, 3),
      proj(whole.proj, group) {}

Tensor ParallelAttention::forward(const Tensor& x, const AttentionOptions& options, const nn::TokenRows& rows) const {
  const int64_t ranks = qkv.group->size(), rank = qkv.group->rank(), own = heads / ranks, length = x.size(2) / heads;
  AttentionOptions with_dropout = options;
  with_dropout.dropout = is_training() ? dropout : 0;
  const auto attend = [&](const std::vector<Tensor>& projected) {
    const int64_t N = projected[0].size(0), tokens = projected[0].size(1);
    // The ranks' Philox blocks lie one after another: four weights of a head share one (kernels/contracts/attention.h).
    const int64_t pairs = (tokens + 1) / 2, blocks = with_dropout.dropout > 0 ? N * own * pairs * pairs : 0;
    RandomGenerator& random = generator(x.device());
    random.take(static_cast<uint64_t>(rank * blocks));
    const Tensor y = attention_packed(projected[0].reshape({N, tokens, 3, own, length}), with_dropout);
    random.take(static_cast<uint64_t>((ranks - 1 - rank) * blocks));
    return y.reshape({N, tokens, own * length});
  };
  const Tensor projected = qkv(x, rows.tokens);
  return proj(rows.documents ? rows.documents->apart({projected}, attend) : attend({projected}));
}

Tensor ParallelAttention::operator()(const Tensor& x, const AttentionOptions& options,
                                     const nn::TokenRows& rows) const {
  return with_hooks(x, [&] { return forward(x, options, rows); });
}

void ParallelAttention::fields(nn::Visitor& v) {
  v("qkv", qkv);
  v("proj", proj);
}

int64_t ParallelAttention::flops(const Shape& x, const Shape&) const {
  const int64_t ranks = qkv.group->size(), parts = qkv.gathers ? ranks : 1;  // x is one part of the sequence
  return 4 * x.numel() * parts * x[1] * parts / ranks;
}

ParallelMlp::ParallelMlp(int64_t width, int64_t hidden, const ProcessGroupPtr& group)
    : fc1(width, hidden, group, {.linear = kLinear}), fc2(hidden, width, group, kLinear) {}

Tensor ParallelMlp::forward(const Tensor& x, int64_t tokens) const {
  return fc2(fc1.forward_gelu(x, Gelu::erf, tokens));
}

Tensor ParallelMlp::operator()(const Tensor& x, int64_t tokens) const {
  return with_hooks(x, [&] { return forward(x, tokens); });
}

void ParallelMlp::fields(nn::Visitor& v) {
  v("fc1", fc1);
  v("fc2", fc2);
}

namespace {

/// norm(x), or of x + residual, where the ranks have other tokens: they sum the gradients of weight and bias.
Tensor norm_of_own(const nn::LayerNorm& norm, const Tensor& x, const ProcessGroupPtr& group) {
  return norm.with_hooks(x, [&] {
    const Tensor pair = copy_to_region(stack({norm.weight, norm.bias}, 0), group);
    return layer_norm(x, pair.select(0, 0), pair.select(0, 1), norm.eps);
  });
}

/// y of a block whose ranks keep their own tokens: `attend` and `feed` are its branches.
template <class Block, class Attend, class Feed>
Tensor on_own_tokens(const Block& block, const nn::LayerNorm& first, const nn::LayerNorm& second, const Tensor& given,
                     const nn::TokenRows& rows, const Attend& attend, const Feed& feed) {
  const ProcessGroupPtr& group = block.attn.qkv.group;
  WEFT_CHECK(!block.enters || rows.tokens > 0 || given.size(1) % group->size() == 0,
             "sequence parallelism: ", given.size(1), " tokens do not divide by ", group->size(),
             " model ranks: expected nn::TokenRows with their number");
  const Tensor x = block.enters ? own_tokens(given, group) : given;
  const Tensor sum = x + attend(norm_of_own(first, x, group));
  const Tensor y = sum + feed(norm_of_own(second, sum, group));
  return block.leaves ? all_tokens(y, group, rows.tokens) : y;
}

}  // namespace

ParallelBlock::ParallelBlock(const ParallelBlockOptions& options, const ProcessGroupPtr& group)
    : norm1(options.width, options.eps),
      attn(options.width, options.heads, group),
      norm2(options.width, options.eps),
      mlp(options.width, options.hidden, group),
      tokens(group->size() > 1 ? options.tokens : Tokens::all) {
  attn.keep(tokens);
  mlp.fc1.gathers = mlp.fc2.scatters = tokens == Tokens::own;
}

Tensor ParallelBlock::forward(const Tensor& x, const nn::TokenRows& rows) const {
  if (tokens == Tokens::all) {
    const NormedSum stream = norm2.add(x, attn(norm1(x)));
    return stream.sum + mlp(stream.y);
  }
  const auto feed = [&](const Tensor& y) { return mlp(y, rows.tokens); };
  return on_own_tokens(
      *this, norm1, norm2, x, rows, [&](const Tensor& y) { return attn(y, {}, rows); }, feed);
}

Tensor ParallelBlock::operator()(const Tensor& x, const nn::TokenRows& rows) const {
  return with_hooks(x, [&] { return forward(x, rows); });
}

void ParallelBlock::fields(nn::Visitor& v) {
  v("norm1", norm1);
  v("attn", attn);
  v("norm2", norm2);
  v("mlp", mlp);
}

ParallelGptBlock::ParallelGptBlock(const nn::GptBlock& whole, const ProcessGroupPtr& group, Tokens kept)
    : ln_1(whole.ln_1.weight.size(0), whole.ln_1.eps),
      attn(whole.attn, group),
      ln_2(whole.ln_2.weight.size(0), whole.ln_2.eps),
      c_fc(whole.c_fc, group),
      c_proj(whole.c_proj, group),
      dropout(whole.dropout.p),
      gelu(whole.gelu),
      tokens(kept) {
  attn.keep(tokens);
  c_fc.gathers = c_proj.scatters = tokens == Tokens::own;
  ln_1.weight = whole.ln_1.weight, ln_1.bias = whole.ln_1.bias;
  ln_2.weight = whole.ln_2.weight, ln_2.bias = whole.ln_2.bias;
}

/// A rank's masks follow those of lower ranks. Four elements share a Philox block (kernels/contracts/random.h); a draw
/// of f64 takes twice as many blocks.
Tensor ParallelGptBlock::dropped(const Tensor& x) const {
  if (!is_training() || dropout.p == 0) return x;
  const auto blocks = [](int64_t elements, int64_t each) {
    return static_cast<uint64_t>((elements + each - 1) / each);
  };
  const ProcessGroup& group = *attn.qkv.group;
  RandomGenerator& random = generator(x.device());
  const uint64_t end = random.offset + blocks(x.numel() * group.size(), x.dtype() == DType::f64 ? 2 : 4);
  random.take(static_cast<uint64_t>(group.rank()) * blocks(x.numel(), 4));
  const Tensor y = dropout(x);
  random.offset = end;
  return y;
}

Tensor ParallelGptBlock::forward(const Tensor& x, const nn::TokenRows& rows) const {
  if (tokens == Tokens::all) {
    const NormedSum stream = ln_2.add(x, dropout(attn(ln_1(x), {.causal = true}, rows)));
    return stream.sum + dropout(c_proj(c_fc.forward_gelu(stream.y, gelu)));
  }
  const auto attend = [&](const Tensor& y) { return dropped(attn(y, {.causal = true}, rows)); };
  const auto feed = [&](const Tensor& y) { return dropped(c_proj(c_fc.forward_gelu(y, gelu, rows.tokens))); };
  return on_own_tokens(*this, ln_1, ln_2, x, rows, attend, feed);
}

Tensor ParallelGptBlock::operator()(const Tensor& x, const nn::TokenRows& rows) const {
  return with_hooks(x, [&] { return forward(x, rows); });
}

void ParallelGptBlock::fields(nn::Visitor& v) {
  v("ln_1", ln_1);
  v("attn", attn);
  v("ln_2", ln_2);
  v("mlp.c_fc", c_fc);
  v("mlp.c_proj", c_proj);
  v("dropout", dropout);
}

void divide_blocks(nn::Gpt& model, const ProcessGroupPtr& group, Tokens tokens) {
  WEFT_CHECK(group, "divide_blocks: expected a group, got none");
  if (group->size() == 1) return;
  const auto first = model.h.front(), last = model.h.back();
  for (std::shared_ptr<nn::GptLayer>& block : model.h) {
    const auto* const whole = dynamic_cast<const nn::GptBlock*>(block.get());
    WEFT_CHECK(whole, "divide_blocks: expected whole blocks, got ", block->kind());
    const auto divided = std::make_shared<ParallelGptBlock>(*whole, group, tokens);
    divided->enters = block == first, divided->leaves = block == last;
    block = divided;
  }
}

}  // namespace weft::dist
