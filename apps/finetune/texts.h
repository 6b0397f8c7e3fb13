// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/finetune/labels.h"
#include "data/loader.h"
#include "data/text/encoding.h"
#include "data/text/text_table.h"
#include "dist/group/world.h"

namespace weft::finetune {

/// Encoded texts of one part of a set.
struct Texts {
  std::vector<data::Encoding> encodings;
  std::vector<double> labels;  ///< classes, or of a regression scores
  bool regression = false;
};

/// Encodes a table. Errors: a label that does not fit; a text with a token, or a pair with a token type, for which the
/// model has no embedding.
Texts encode(const data::TextTable& table, const Labels& labels, const data::TextEncoder& tokens,
             const nn::BertOptions& model, int64_t max_length);

/// The most lengths of batches on a GPU, where each length has a CUDA graph.
constexpr int kMostLengths = 16;

/// The least multiple of 8 tokens for TextLoader with which batches have at most kMostLengths lengths.
int64_t padding_step(const Texts& texts);

/// The input of a step, padded to its own longest text, or further (TextLoader).
struct TextBatch {
  Tensor input;   ///< i64 [count, 3, tokens]: ids, token types, and 1 up to the end of the text
  Tensor labels;  ///< i64 [count], of a regression f32
  int64_t count = 0, epoch = 0, step = 0;
  void fields(auto& v) { v("input", input), v("labels", labels); }
};

/// A text of a set that lives elsewhere.
struct Text {
  const data::Encoding* encoding;
  double label;
};

/// Brings the texts of this rank, an epoch at a time, from the first epoch on. `order` says which text comes when. A
/// batch is padded to a multiple of `multiple` tokens, or to the longest text of all if that is less.
class TextLoader : public data::Loader<TextBatch> {
 public:
  TextLoader(const Texts& texts, const data::Sampler& order, int64_t batch_size, int64_t padding_id, Device device,
             int64_t multiple = 1);
};

}  // namespace weft::finetune
