// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "core/ops/layers/attention.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/layer_norm.h"
#include "nn/transformer.h"

namespace weft::nn {

/// The family of a model, which differs in details from BERT (Devlin et al. 2018).
enum class BertKind : uint8_t {
  bert,
  roberta,     ///< Liu et al. 2019: positions are counted from 2; dropout in front of the head too
  distilbert,  ///< Sanh et al. 2019: no token types, no dropout after attention; the head has a ReLU in place of tanh
};

/// The activation between the two products of a layer's feed-forward.
enum class BertActivation : uint8_t { gelu, gelu_tanh, relu, silu };

struct BertOptions {
  BertKind kind = BertKind::bert;
  int64_t vocabulary = 30522, positions = 512, token_types = 2;
  int64_t width = 768, depth = 12, heads = 12, hidden = 3072;
  int64_t classes = 2;  ///< classes of a sequence
  BertActivation activation = BertActivation::gelu;
  double dropout = 0.1;           ///< after embeddings and branches
  double attention_dropout = -1;  ///< on attention weights; -1: as dropout
  double head_dropout = -1;       ///< before the classifier; -1: as dropout
  double eps = 1e-12;             ///< added to the norms' variances
  int64_t padding = -1;           ///< id of the padding token; -1: 0, of RoBERTa 1
  bool recompute = false;         ///< backward computes each layer a second time: memory for time

  int64_t padding_row() const { return padding >= 0 ? padding : kind == BertKind::roberta ? 1 : 0; }
  /// The row of the first token's position: RoBERTa counts from the padding token's id and 1.
  int64_t first_position() const { return kind == BertKind::roberta ? padding_row() + 1 : 0; }
  /// Tokens of the longest sequence.
  int64_t tokens() const { return positions - first_position(); }
};

/// A batch of token sequences, all as long as the longest.
struct TokenBatch {
  Tensor ids;          ///< i64 [N, tokens]
  Tensor token_types;  ///< i64 [N, tokens]; undefined: all 0
  Tensor lengths;      ///< i64 [N]: tokens of each sequence before its padding; undefined: no padding
};

/// Sum of the embeddings of token, place and type, then a norm: to [N, tokens, width].
struct BertEmbeddings : Module {
  Embedding word_embeddings, position_embeddings;
  std::shared_ptr<Embedding> token_type_embeddings;  ///< none of 0 token types
  int64_t first_position;
  LayerNorm norm;
  Dropout dropout;

  explicit BertEmbeddings(const BertOptions& options);
  Tensor forward(const Tensor& ids) const override { return forward(ids, {}); }
  Tensor forward(const Tensor& ids, const Tensor& token_types) const;
  using Module::operator();
  Tensor operator()(const Tensor& ids, const Tensor& token_types) const;
  void fields(Visitor& v) override;
};

/// One layer, norms after the sums (Devlin et al. 2018; Vaswani et al. 2017): x = norm(x + attention(x)), x = norm(x +
/// mlp(x)).
struct BertLayer : Module {
  MultiHeadAttention attention;
  LayerNorm attention_norm;
  Linear intermediate, output;
  LayerNorm output_norm;
  Dropout dropout;
  bool drops_attended;  ///< after the attention's result, too
  BertActivation activation;

  explicit BertLayer(const BertOptions& options);
  Tensor forward(const Tensor& x) const override { return forward(x, AttentionOptions{}); }
  Tensor forward(const Tensor& x, const AttentionOptions& mask) const;
  using Module::operator();
  Tensor operator()(const Tensor& x, const AttentionOptions& mask) const;
  void fields(Visitor& v) override;
};

/// Devlin et al. 2018, "BERT: Pre-training of deep bidirectional transformers for language understanding". The head
/// classifies a whole sequence by its first token. The models that followed (BertKind) have the same parameter names
/// here: the names of Hugging Face's BERT. Two differ: `attention.self.qkv` (its attention.self.query, key and value
/// concatenated) and `attention.self.proj` (its attention.output.dense).
struct Bert : Module {
  BertOptions options;
  BertEmbeddings embeddings;
  std::vector<std::shared_ptr<BertLayer>> layers;
  Linear pooler;
  Dropout dropout;
  Linear classifier;

  explicit Bert(const BertOptions& options = {});
  /// Logits [N, classes] of ids [N, tokens] without padding.
  Tensor forward(const Tensor& ids) const override { return forward(TokenBatch{ids, {}, {}}); }
  Tensor forward(const TokenBatch& batch) const;
  using Module::operator();
  Tensor operator()(const TokenBatch& batch) const;
  /// The last layer's tokens [N, tokens, width].
  Tensor encode(const TokenBatch& batch) const;
  void fields(Visitor& v) override;
};

/// The names that bert_options() knows: bert_base (12 layers, 768 wide), bert_tiny (2 layers, 128 wide), roberta_base,
/// distilbert_base (6 layers).
std::vector<std::string> bert_names();

/// The sizes of a model by its name. Errors: an unknown name, with the nearest known one.
BertOptions bert_options(const std::string& name);

}  // namespace weft::nn
