// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "nn/dropout.h"
#include "nn/layer_norm.h"
#include "nn/models/language_model.h"

namespace weft::nn {

struct GptOptions {
  int64_t vocabulary = 50257;
  int64_t positions = 1024;  ///< tokens of the longest sequence
  int64_t width = 768, depth = 12, heads = 12;
  double dropout = 0;  ///< on embeddings, attention weights and branches
  double eps = 1e-5;   ///< added to the norms' variances
  int64_t hidden = 0;  ///< width inside the mlp; 0: four times `width`
  Gelu gelu = Gelu::tanh;
  bool recompute = false;  ///< backward computes each block a second time: memory for time
};

/// A block of a Gpt: whole, or a rank's part.
struct GptLayer : Module {
  using Module::operator();
  /// forward() of x [N, tokens, width] within the documents of these rows.
  virtual Tensor operator()(const Tensor& x, const TokenRows& rows) const = 0;
};

/// Norms in front: x += attn(ln_1(x)), x += mlp(ln_2(x)), causal, the mlp with gelu. x [N, tokens, width].
struct GptBlock : GptLayer {
  LayerNorm ln_1;
  MultiHeadAttention attn;
  LayerNorm ln_2;
  Linear c_fc, c_proj;
  Dropout dropout;
  Gelu gelu;

  explicit GptBlock(const GptOptions& options);
  Tensor forward(const Tensor& x) const override;
  using GptLayer::operator();
  Tensor operator()(const Tensor& x, const TokenRows& rows) const override;
  /// MultiHeadAttention::extend().
  Tensor extend(const Tensor& x, KeysAndValues& past, const Tensor& mask = {}) const;
  void fields(Visitor& v) override;

 private:
  Tensor add_branches(const Tensor& x, const Tensor& attended) const;
};

/// Radford et al. 2019, "Language models are unsupervised multitask learners" (GPT-2): the next token after each. The
/// output layer is the token embedding's weight (tied; one parameter, also under DDP and FSDP). Weights begin as the
/// paper says: 0.02, projections into the residual stream 0.02 / sqrt(2 depth). Parameter names are as in the published
/// files, but for `attn.qkv` and `attn.proj` (their attn.c_attn and attn.c_proj). Matrices are stored as Linear's [out,
/// in]: the name map `hf_gpt2` transposes them.
struct Gpt : LanguageModel {
  GptOptions options;
  std::shared_ptr<Embedding> wte;  ///< tokens; or what divides them among ranks
  Embedding wpe;                   ///< positions
  Dropout dropout;
  std::vector<std::shared_ptr<GptLayer>> h;  ///< GptBlocks, or what divides them among ranks
  LayerNorm ln_f;

  explicit Gpt(const GptOptions& options = {});
  /// cross_entropy(forward(ids), targets), targets i64 [N, tokens], without holding all logits: see
  /// linear_cross_entropy().
  Tensor loss(const Tensor& ids, const Tensor& targets, const LinearCrossEntropyOptions& how = {}) const;
  Tensor extend(const Tensor& ids, std::vector<KeysAndValues>& past,
                const std::vector<int64_t>& padding = {}) const override;
  int64_t positions() const override { return options.positions; }
  const Embedding& embedding() const override { return *wte; }
  void fields(Visitor& v) override;
  int64_t layers() const override { return options.depth; }
  Tensor run(LayerRange range, const Tensor& x, const Tensor& sample) const override;
  bool uses(LayerRange range, const std::string& parameter) const override;

 private:
  /// `places`: the positions of the tokens, i64 [tokens] or [N, tokens].
  Tensor embed(const Tensor& ids, int64_t before, const Tensor& places) const;
  Tensor run_blocks(LayerRange range, const Tensor& given, const Tensor& sample) const;
};

/// The names that gpt_options() knows: gpt2 (12 layers, 768 wide: 124 million parameters), gpt2_medium, gpt2_large,
/// gpt2_xl, gpt_mini (6 layers, 384 wide, 256 positions), gpt_tiny (4 layers, 128 wide, 64 positions).
std::vector<std::string> gpt_names();

/// The sizes of a model by its name. Errors: an unknown name, with the nearest known one.
GptOptions gpt_options(const std::string& name);

}  // namespace weft::nn
