// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/binary.h"
#include "nn/dropout.h"
#include "nn/layer_norm.h"
#include "nn/mlp.h"
#include "nn/module.h"
#include "nn/multi_head_attention.h"

namespace weft::nn {

/// y = gamma x with one trained factor per channel, the last dimension (Touvron et al. 2021, "Going deeper with image
/// transformers", section 2).
struct LayerScale : Module {
  Tensor gamma;

  LayerScale(int64_t size, double init) : gamma(Tensor::full({size}, init).requires_grad_()) {}
  Tensor forward(const Tensor& x) const override { return mul(x, gamma.to(x.dtype())); }
  void fields(Visitor& v) override { v("gamma", gamma); }
};

/// What follows the attention of a block.
enum class FeedForward { mlp, swiglu };

struct TransformerBlockOptions {
  int64_t width = 0, heads = 0;
  int64_t hidden = 0;  ///< width inside the feed-forward
  FeedForward feed_forward = FeedForward::mlp;
  double layer_scale = 0;  ///< how the factors of LayerScale begin; 0: none
  double drop_path = 0;
  double eps = 1e-6;  ///< of the norms
};

/// Norms in front (Dosovitskiy et al. 2020, equations 2 and 3): x += ls1(attn(norm1(x))), x += ls2(mlp(norm2(x))). x
/// [N, tokens, width].
struct TransformerBlock : Module {
  LayerNorm norm1;
  MultiHeadAttention attn;
  std::shared_ptr<LayerScale> ls1;
  DropPath drop_path1;
  LayerNorm norm2;
  std::shared_ptr<Module> mlp;  ///< Mlp or SwiGlu
  std::shared_ptr<LayerScale> ls2;
  DropPath drop_path2;

  explicit TransformerBlock(const TransformerBlockOptions& options);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

}  // namespace weft::nn
