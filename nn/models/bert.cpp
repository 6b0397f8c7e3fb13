// SPDX-License-Identifier: Apache-2.0
#include "nn/models/bert.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "core/text.h"

namespace weft::nn {
namespace {

struct BertSize {
  const char* name;
  BertKind kind;
  int64_t width, depth, heads, hidden;
};

constexpr BertSize kBertSizes[] = {
    {"bert_base", BertKind::bert, 768, 12, 12, 3072},
    {"bert_tiny", BertKind::bert, 128, 2, 2, 512},
    {"roberta_base", BertKind::roberta, 768, 12, 12, 3072},
    {"distilbert_base", BertKind::distilbert, 768, 6, 12, 3072},
};

constexpr LinearOptions kLinear{.init = Init::transformer};
constexpr double kStd = 0.02;  // Devlin et al. 2018

Tensor activated(const Linear& linear, const Tensor& x, BertActivation activation) {
  switch (activation) {
    case BertActivation::gelu:
      return linear.forward_gelu(x);
    case BertActivation::gelu_tanh:
      return linear.forward_gelu(x, Gelu::tanh);
    case BertActivation::relu:
      return relu(linear(x));
    case BertActivation::silu:
      return silu(linear(x));
  }
  fail("Bert: an activation that is none");
}

}  // namespace

BertEmbeddings::BertEmbeddings(const BertOptions& options)
    : word_embeddings(options.vocabulary, options.width,
                      {.std = kStd, .padding = options.padding_row()}),
      position_embeddings(options.positions, options.width, {.std = kStd}),
      token_type_embeddings(options.token_types > 0 ? std::make_shared<Embedding>(options.token_types, options.width,
                                                                                  EmbeddingOptions{.std = kStd})
                                                    : nullptr),
      first_position(options.first_position()),
      norm(options.width, options.eps),
      dropout(options.dropout) {}

Tensor BertEmbeddings::forward(const Tensor& ids, const Tensor& token_types) const {
  WEFT_CHECK(ids.dim() == 2, "Bert: expected ids [N, tokens], got ", ids);
  const int64_t tokens = ids.size(1), most = position_embeddings.weight.size(0) - first_position;
  WEFT_CHECK(tokens <= most, "Bert: expected at most ", most, " tokens, got ", ids);
  const Tensor places = Tensor::arange(tokens, DType::i64, ids.device(), static_cast<double>(first_position));
  const Tensor sum = word_embeddings(ids) + position_embeddings(places);
  if (!token_type_embeddings) return dropout(norm(sum));
  const Tensor types = token_types.defined() ? token_types : Tensor::zeros(ids.sizes(), DType::i64, ids.device());
  return dropout(norm(sum + (*token_type_embeddings)(types)));
}

Tensor BertEmbeddings::operator()(const Tensor& ids, const Tensor& token_types) const {
  return with_hooks(ids, [&] { return forward(ids, token_types); });
}

void BertEmbeddings::fields(Visitor& v) {
  v("word_embeddings", word_embeddings);
  v("position_embeddings", position_embeddings);
  v("token_type_embeddings", token_type_embeddings);
  v("LayerNorm", norm);
  v("dropout", dropout);
}

BertLayer::BertLayer(const BertOptions& options)
    : attention(options.width, options.heads,
                {.dropout = options.attention_dropout >= 0 ? options.attention_dropout : options.dropout}),
      attention_norm(options.width, options.eps),
      intermediate(options.width, options.hidden, kLinear),
      output(options.hidden, options.width, kLinear),
      output_norm(options.width, options.eps),
      dropout(options.dropout),
      drops_attended(options.kind != BertKind::distilbert),
      activation(options.activation) {}

Tensor BertLayer::forward(const Tensor& x, const AttentionOptions& mask) const {
  const Tensor attended = attention(x, mask);
  const Tensor y = attention_norm.add(x, drops_attended ? dropout(attended) : attended).y;
  return output_norm.add(y, dropout(output(activated(intermediate, y, activation)))).y;
}

Tensor BertLayer::operator()(const Tensor& x, const AttentionOptions& mask) const {
  return with_hooks(x, [&] { return forward(x, mask); });
}

void BertLayer::fields(Visitor& v) {
  v("attention.self", attention);
  v("attention.output.LayerNorm", attention_norm);
  v("intermediate.dense", intermediate);
  v("output.dense", output);
  v("output.LayerNorm", output_norm);
  v("dropout", dropout);
}

Bert::Bert(const BertOptions& given)
    : options(given),
      embeddings(options),
      pooler(options.width, options.width, kLinear),
      dropout(options.head_dropout >= 0 ? options.head_dropout : options.dropout),
      classifier(options.width, options.classes, kLinear) {
  for (int64_t i = 0; i < options.depth; ++i) layers.push_back(std::make_shared<BertLayer>(options));
}

Tensor Bert::encode(const TokenBatch& batch) const {
  Tensor x = embeddings(batch.ids, batch.token_types);
  const AttentionOptions mask{.key_lengths = batch.lengths};
  for (const auto& layer : layers) {
    const auto compute = [layer, mask](const std::vector<Tensor>& in) { return (*layer)(in[0], mask); };
    x = options.recompute && grad_enabled() ? checkpoint(compute, {x}) : compute({x});
  }
  return x;
}

Tensor Bert::forward(const TokenBatch& batch) const {
  const Tensor first = encode(batch).select(1, 0);
  const Tensor pooled = pooler(options.kind == BertKind::roberta ? dropout(first) : first);
  return classifier(dropout(options.kind == BertKind::distilbert ? relu(pooled) : tanh(pooled)));
}

Tensor Bert::operator()(const TokenBatch& batch) const {
  return with_hooks(batch.ids, [&] { return forward(batch); });
}

void Bert::fields(Visitor& v) {
  v("bert.embeddings", embeddings);
  v("bert.encoder.layer", layers);
  v("bert.pooler.dense", pooler);
  v("dropout", dropout);
  v("classifier", classifier);
}

std::vector<std::string> bert_names() {
  std::vector<std::string> names;
  for (const BertSize& size : kBertSizes) names.emplace_back(size.name);
  return names;
}

BertOptions bert_options(const std::string& name) {
  for (const BertSize& size : kBertSizes)
    if (name == size.name) {
      BertOptions options{
          .kind = size.kind, .width = size.width, .depth = size.depth, .heads = size.heads, .hidden = size.hidden};
      if (size.kind == BertKind::roberta)
        options.vocabulary = 50265, options.positions = 514, options.token_types = 1, options.eps = 1e-5;
      if (size.kind == BertKind::distilbert) options.token_types = 0, options.head_dropout = 0.2;
      return options;
    }
  fail("bert_options: no model is called '", name, "'.", suggestion(name, bert_names()));
}

}  // namespace weft::nn
