// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/attention.h"
#include "nn/linear.h"

namespace weft::nn {

struct MultiHeadAttentionOptions {
  bool bias = true;    ///< of qkv and proj
  double dropout = 0;  ///< of attention weights, in training
};

/// Keys and values of the tokens so far, [N, tokens, heads, size]; undefined: none.
struct KeysAndValues {
  Tensor keys, values;
};

/// Self-attention (Vaswani et al. 2017, section 3.2.2): x [N, tokens, width] is projected to queries, keys and values
/// of width / heads each, which one matrix product computes side by side as [N, tokens, 3, heads, width / heads].
struct MultiHeadAttention : Module {
  int64_t heads;
  double dropout;
  Linear qkv, proj;

  MultiHeadAttention(int64_t width, int64_t heads, MultiHeadAttentionOptions options = {});
  Tensor forward(const Tensor& x) const override { return forward(x, AttentionOptions{}); }
  /// With masks; `options.dropout` is the module's own.
  Tensor forward(const Tensor& x, const AttentionOptions& options) const;
  /// Causal attention of tokens that follow those of `past`, which takes theirs, too. Errors: several tokens where
  /// `past` has some.
  Tensor extend(const Tensor& x, KeysAndValues& past) const;
  using Module::operator();
  Tensor operator()(const Tensor& x, const AttentionOptions& options) const;
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;
};

}  // namespace weft::nn
