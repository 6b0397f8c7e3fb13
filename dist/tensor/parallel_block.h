// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/tensor/parallel_linear.h"
#include "nn/models/gpt.h"

namespace weft::dist {

/// Which tokens a rank keeps between the regions of a block: norms, dropout and sums work on them.
enum class Tokens : uint8_t {
  all,  ///< every token, on each rank
  own,  ///< a stretch of the sequence (sequence parallelism)
};

/// nn::MultiHeadAttention whose heads are divided among the ranks of a group: each rank computes heads / ranks of
/// them, with its rows of qkv and its columns of proj. x [N, tokens, width] and y are the same on all ranks. Weights
/// have the names of one process. Dropout: each rank draws the weights of its own heads, and leaves the generator where
/// one process would; with N = 1 they drop the same elements as one process.
struct ParallelAttention : nn::Module {
  int64_t heads;   ///< heads of all ranks
  double dropout;  ///< on attention weights, in training
  ColumnParallelLinear qkv;
  RowParallelLinear proj;

  /// Errors: the heads do not divide the width, or the ranks do not divide the heads.
  ParallelAttention(int64_t width, int64_t head_count, const ProcessGroupPtr& group)
      : ParallelAttention(nn::MultiHeadAttention(width, head_count), group) {}
  ParallelAttention(const nn::MultiHeadAttention& whole, const ProcessGroupPtr& group);
  Tensor forward(const Tensor& x) const override { return forward(x, {}, {}); }
  using Module::operator();
  /// As nn::MultiHeadAttention's, within the documents of these rows.
  Tensor operator()(const Tensor& x, const AttentionOptions& options, const nn::TokenRows& rows = {}) const;
  void keep(Tokens tokens) { qkv.gathers = proj.scatters = tokens == Tokens::own; }
  void fields(nn::Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;

 private:
  Tensor forward(const Tensor& x, const AttentionOptions& options, const nn::TokenRows& rows) const;
};

/// nn::Mlp whose hidden units are divided among the ranks of a group.
struct ParallelMlp : nn::Module {
  ColumnParallelLinear fc1;
  RowParallelLinear fc2;

  ParallelMlp(int64_t width, int64_t hidden, const ProcessGroupPtr& group);
  Tensor forward(const Tensor& x) const override { return forward(x, 0); }
  using Module::operator();
  /// As ColumnParallelLinear's.
  Tensor operator()(const Tensor& x, int64_t tokens) const;
  void fields(nn::Visitor& v) override;

 private:
  Tensor forward(const Tensor& x, int64_t tokens) const;
};

struct ParallelBlockOptions {
  int64_t width = 0, heads = 0;
  int64_t hidden = 0;  ///< width inside the feed-forward
  double eps = 1e-6;   ///< added to the norms' variances
  Tokens tokens = Tokens::all;
};

/// nn::TransformerBlock over the ranks of a group: x += attn(norm1(x)), x += mlp(norm2(x)), with whole norms on each
/// rank. Two all_reduce of [N, tokens, width] in forward and two in backward, whatever the number of ranks. With
/// Tokens::own two all_gather and two reduce_scatter replace them, and the ranks sum the gradients of norms and biases.
struct ParallelBlock : nn::Module {
  nn::LayerNorm norm1;
  ParallelAttention attn;
  nn::LayerNorm norm2;
  ParallelMlp mlp;
  Tokens tokens;
  bool enters = false, leaves = false;  ///< x, and y, hold all tokens, whichever this block works on

  ParallelBlock(const ParallelBlockOptions& options, const ProcessGroupPtr& group);
  Tensor forward(const Tensor& x) const override { return forward(x, {}); }
  using Module::operator();
  /// `rows` without documents.
  Tensor operator()(const Tensor& x, const nn::TokenRows& rows) const;
  void fields(nn::Visitor& v) override;

 private:
  Tensor forward(const Tensor& x, const nn::TokenRows& rows) const;
};

/// nn::GptBlock over the ranks of a group: as ParallelBlock, with dropout after each sum, the same on all ranks. With
/// Tokens::own each rank draws its own tokens' dropout. Where the ranks divide the tokens they leave the generator as
/// one process would, and with N = 1 drop the same elements.
struct ParallelGptBlock : nn::GptLayer {
  nn::LayerNorm ln_1;
  ParallelAttention attn;
  nn::LayerNorm ln_2;
  ColumnParallelLinear c_fc;
  RowParallelLinear c_proj;
  nn::Dropout dropout;
  Gelu gelu;
  Tokens tokens;
  bool enters = false, leaves = false;  ///< x, and y, hold all tokens, whichever this block works on

  /// This rank's part of a block that each rank has whole.
  ParallelGptBlock(const nn::GptBlock& whole, const ProcessGroupPtr& group, Tokens kept = Tokens::all);
  Tensor forward(const Tensor& x) const override { return forward(x, {}); }
  using GptLayer::operator();
  Tensor operator()(const Tensor& x, const nn::TokenRows& rows) const override;
  void fields(nn::Visitor& v) override;

 private:
  Tensor forward(const Tensor& x, const nn::TokenRows& rows) const;
  Tensor dropped(const Tensor& x) const;
};

/// Puts ParallelGptBlocks in place of the blocks of a GPT that each rank of the group has whole; embeddings and the
/// last norm stay whole. With Tokens::own the first block takes a rank's tokens, and the last one joins them. In a
/// group of one rank: does nothing. Errors: blocks that are divided already, those of ParallelAttention.
void divide_blocks(nn::Gpt& model, const ProcessGroupPtr& group, Tokens tokens = Tokens::all);

}  // namespace weft::dist
