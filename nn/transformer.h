// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "core/ops/binary.h"
#include "core/ops/layers/attention.h"
#include "core/ops/unary.h"
#include "nn/dropout.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/module.h"

namespace weft::nn {

/// y = fc2(gelu(fc1(x))) over the last dimension, `hidden` wide in between (Vaswani et al. 2017, section 3.3).
struct Mlp : Module {
  Linear fc1, fc2;

  Mlp(Integer width, Integer hidden);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

/// y = w3(silu(a) b), [a, b] = w12(x) (Shazeer 2020, "GLU variants improve transformer").
struct SwiGlu : Module {
  Linear w12, w3;

  SwiGlu(Integer width, Integer hidden);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

struct MultiHeadAttentionOptions {
  bool bias = true;    ///< whether qkv and proj have a bias
  double dropout = 0;  ///< on attention weights, in training
};

/// The documents in rows of tokens (packing): each attends to itself alone, and its positions begin at 0. Attention
/// computes documents of similar lengths together, padded to the longest: no pair of tokens of two documents, and no
/// array of tokens squared.
class Documents {
 public:
  /// `starts`, i64 [N, tokens]: where in the row each token's document begins. Its values are read on the host.
  /// Errors: other sizes, a start that is neither the token's own place nor the start before.
  explicit Documents(const Tensor& starts);

  /// i64 [N, tokens]: the place of each token in its document.
  const Tensor& positions() const { return positions_; }
  /// Calls `f` with each group's part of the inputs [N, tokens, …], as [documents, length, …]. Returns the results, of
  /// the same form, as [N, tokens, …].
  Tensor apart(const std::vector<Tensor>& inputs,
               const std::function<Tensor(const std::vector<Tensor>& documents)>& f) const;

 private:
  struct Group {
    int64_t count, length;  ///< documents; tokens of the longest
    Tensor tokens;          ///< i64 [count length]: of all rows' tokens; a document's last one is repeated
  };
  std::vector<Group> groups_;
  Tensor positions_;
  Tensor places_;  ///< i64 [N tokens]: where among the groups' tokens each token is
};

/// The rows of tokens that a block works on.
struct TokenRows {
  int64_t tokens = 0;                               ///< in each row; 0: as many as x has
  std::shared_ptr<const Documents> documents = {};  ///< none: each row is a single one
};

/// Keys and values of the tokens so far, [N, tokens, heads, size]; undefined: none.
struct KeysAndValues {
  Tensor keys{}, values{};
  int64_t capacity = 0;  ///< tokens that append() has room for; 0: unknown, it grows by half

  /// Adds k and v [N, new tokens, heads, size]. Without gradients they are written after the earlier tokens, which are
  /// not copied. Copies of this object go on independently.
  void append(const Tensor& k, const Tensor& v);
  /// Causal attention() of q [N, tokens, heads, size], the queries of the last tokens. A key_mask has all tokens.
  /// `window`: tokens that one sees, itself among them; 0: all before it. Errors: options with a bias, key lengths or a
  /// window.
  Tensor attend(const Tensor& q, AttentionOptions options = {}, int64_t window = 0) const;

  struct Room;
  std::shared_ptr<Room> room = {};  ///< append()'s
};

/// Self-attention (Vaswani et al. 2017, section 3.2.2): x [N, tokens, width] is projected to queries, keys and values
/// of width / heads each. One GEMM computes all three as [N, tokens, 3, heads, width / heads].
struct MultiHeadAttention : Module {
  int64_t heads;
  double dropout;
  Linear qkv, proj;

  MultiHeadAttention(Integer width, Integer heads, MultiHeadAttentionOptions options = {});
  Tensor forward(const Tensor& x) const override { return forward(x, AttentionOptions{}); }
  /// With masks; `options.dropout` is the module's own.
  Tensor forward(const Tensor& x, const AttentionOptions& options) const;
  /// Causal attention of tokens that follow those of `past`, which takes theirs, too.
  /// `mask`, bool [N, all tokens]: which keys may be seen; none: all.
  Tensor extend(const Tensor& x, KeysAndValues& past, const Tensor& mask = {}) const;
  using Module::operator();
  Tensor operator()(const Tensor& x, const AttentionOptions& options) const;
  /// Causal attention within each document.
  Tensor operator()(const Tensor& x, const Documents& documents) const;
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;
};

struct CrossAttentionOptions {
  int64_t context = 0;  ///< width of what is attended to; 0: that of x
  bool bias = true;
  double dropout = 0;  ///< probability to drop an attention weight, in training
};

/// Attention of x [N, tokens, width] to other tokens [N, others, context], which give the keys and values.
struct CrossAttention : Module {
  int64_t heads;
  double dropout;
  Linear q, kv, proj;

  CrossAttention(Integer width, Integer heads, CrossAttentionOptions options = {});
  Tensor forward(const Tensor& x) const override { return attend(x, x, {}); }  ///< to x itself
  using Module::operator();
  /// `options.dropout` is the module's own.
  Tensor operator()(const Tensor& x, const Tensor& context, const AttentionOptions& options = {}) const;
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;

 private:
  Tensor attend(const Tensor& x, const Tensor& context, const AttentionOptions& options) const;
};

/// y = gamma x with one trained factor per channel, the last dimension (Touvron et al. 2021, "Going deeper with image
/// transformers", section 2).
struct LayerScale : Module {
  Tensor gamma;

  LayerScale(int64_t size, double init) : gamma(Tensor::full({size}, init).requires_grad_()) {}
  Tensor forward(const Tensor& x) const override { return mul(x, gamma.to(x.dtype())); }
  void fields(Visitor& v) override { v("gamma", gamma); }
};

/// The second half of a block, after attention.
enum class FeedForward { mlp, swiglu };

struct TransformerBlockOptions {
  int64_t width = 0, heads = 0;
  int64_t hidden = 0;  ///< width inside the feed-forward
  FeedForward feed_forward = FeedForward::mlp;
  double layer_scale = 0;  ///< how the factors of LayerScale begin; 0: none
  double drop_path = 0;
  double eps = 1e-6;  ///< added to the norms' variances
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
