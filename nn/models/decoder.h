// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "core/ops/layers/rotary.h"
#include "nn/dropout.h"
#include "nn/layer_norm.h"
#include "nn/lora.h"
#include "nn/models/language_model.h"

namespace weft::nn {

/// How a model reaches positions beyond its first training's.
enum class RotaryScaling : uint8_t {
  none,
  linear,  ///< positions are divided by the factor (Chen et al. 2023)
  llama3,  ///< slow pairs turn slower by the factor, fast ones as before (Llama 3.1)
  yarn,    ///< a ramp over the pairs, and larger products (Peng et al. 2023)
};

/// The angles of rotary().
struct RotaryPositions {
  double theta = 10000;  ///< pair i of D / 2 turns by theta^(-2 i / D) a position
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;
  int64_t original = 8192;      ///< positions before the scaling
  double low = 1, high = 4;     ///< llama3: turns within `original` that part slow, middle and fast pairs
  double slow = 1, fast = 32;   ///< yarn: the same
  bool whole = true;            ///< yarn: the ramp begins and ends at whole pairs
  double attention_factor = 0;  ///< yarn: of queries and keys; 0: 0.1 ln(factor) + 1

  /// rotary()'s options for heads of `size` elements.
  RotaryOptions of_heads(int64_t size) const;
};

struct DecoderOptions {
  int64_t vocabulary = 32000;
  int64_t positions = 2048;  ///< tokens of the longest sequence
  int64_t width = 512, depth = 8, heads = 8;
  int64_t groups = 0;     ///< heads of keys and values, each shared by heads / groups queries; 0: `heads`
  int64_t head_size = 0;  ///< 0: width / heads
  int64_t hidden = 0;     ///< width inside the mlp; 0: 8 / 3 of `width`
  RotaryPositions rotary = {};
  double eps = 1e-6;        ///< the norms'
  bool qkv_bias = false;    ///< Qwen-2
  bool qk_norm = false;     ///< Qwen-3: a norm over each head's queries and keys
  bool tied = false;        ///< the output layer is the token embedding's weight
  int64_t window = 0;       ///< tokens that one sees, itself among them; 0: all before it
  int64_t window_from = 0;  ///< the first layer that has the window
  double dropout = 0;       ///< embeddings', attention weights' and branches'
  bool recompute = false;   ///< backward computes each block a second time: memory for time

  int64_t kv_heads() const { return groups > 0 ? groups : heads; }
  int64_t size_of_head() const { return head_size > 0 ? head_size : width / heads; }
  int64_t size_of_hidden() const { return hidden > 0 ? hidden : width * 8 / 3; }
};

/// Causal self-attention with rotary positions, where several heads of queries share keys and values (Ainslie et al.
/// 2023, "GQA"): x [N, tokens, width].
struct DecoderAttention : Module {
  int64_t heads, groups, window;  ///< window 0: none
  RotaryOptions rotary;
  double dropout;
  AdaptedLinear q_proj, k_proj, v_proj, o_proj;
  std::shared_ptr<RMSNorm> q_norm, k_norm;  ///< or none

  DecoderAttention(const DecoderOptions& options, int64_t layer);
  Tensor forward(const Tensor& x) const override;
  using Module::operator();
  /// Within each document.
  Tensor operator()(const Tensor& x, const Documents& documents) const;
  /// MultiHeadAttention::extend().
  Tensor extend(const Tensor& x, KeysAndValues& past, const Tensor& mask = {}) const;
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;

 private:
  struct Projected {
    Tensor q, k, v;  ///< [N, tokens, heads or groups, channels], without positions
  };
  Projected project(const Tensor& x) const;
  Tensor attend(const Tensor& x, KeysAndValues& past, const Tensor& mask) const;
};

/// y = down(silu(gate(x)) up(x)) (Shazeer 2020), under the names of published files.
struct GatedMlp : Module {
  AdaptedLinear gate_proj, up_proj, down_proj;

  GatedMlp(Integer width, Integer hidden);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

/// Norms in front: x += attention(norm(x)), x += mlp(norm(x)). x [N, tokens, width].
struct DecoderBlock : Module {
  RMSNorm input_layernorm;
  DecoderAttention self_attn;
  RMSNorm post_attention_layernorm;
  GatedMlp mlp;
  Dropout dropout;

  DecoderBlock(const DecoderOptions& options, int64_t layer);
  Tensor forward(const Tensor& x) const override;
  using Module::operator();
  Tensor operator()(const Tensor& x, const TokenRows& rows) const;
  Tensor extend(const Tensor& x, KeysAndValues& past, const Tensor& mask = {}) const;
  void fields(Visitor& v) override;

 private:
  Tensor add_branches(const Tensor& x, const Tensor& attended) const;
};

/// The decoder of Llama (Touvron et al. 2023) and of the models that followed it: Llama-3, Mistral, Qwen-2.5, Qwen-3,
/// SmolLM. Parameter names and shapes are those of Hugging Face's files. Weights begin as theirs: normal of standard
/// deviation 0.02, biases 0.
struct Decoder : LanguageModel {
  DecoderOptions options;
  Embedding embed_tokens;
  Dropout dropout;
  std::vector<std::shared_ptr<DecoderBlock>> blocks;
  RMSNorm norm;
  std::shared_ptr<Linear> lm_head;  ///< none where it is tied

  explicit Decoder(const DecoderOptions& options = {});
  Tensor extend(const Tensor& ids, std::vector<KeysAndValues>& past,
                const std::vector<int64_t>& padding = {}) const override;
  int64_t positions() const override { return options.positions; }
  const Embedding& embedding() const override { return embed_tokens; }
  void fields(Visitor& v) override;
  int64_t layers() const override { return options.depth; }
  Tensor run(LayerRange range, const Tensor& x, const Tensor& sample) const override;
  bool uses(LayerRange range, const std::string& parameter) const override;

 private:
  Tensor embed(const Tensor& ids, int64_t before) const;
  Tensor logits(const Tensor& x) const;
};

/// The names that decoder_options() knows. Published models: smollm_135m, llama3.2_1b, llama3.1_8b, mistral_7b,
/// qwen2.5_0.5b, qwen3_0.6b. For small texts: llama_mini (6 layers, 384 wide), llama_tiny (4 layers, 128 wide).
std::vector<std::string> decoder_names();

/// The sizes of a model by its name. Errors: an unknown name, with the nearest known one.
DecoderOptions decoder_options(const std::string& name);

}  // namespace weft::nn
