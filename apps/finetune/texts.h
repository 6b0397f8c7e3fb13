// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/support/ranks.h"
#include "core/tensor.h"
#include "data/sampler.h"
#include "data/text/text_table.h"
#include "data/text/wordpiece.h"

namespace weft::finetune {

/// Encoded texts of one part of a set.
struct Texts {
  std::vector<data::Encoding> encodings;
  std::vector<int64_t> labels;
};

/// Encodes a table. Errors: a row without a label.
Texts encode(const data::TextTable& table, const data::WordPiece& pieces, int64_t max_length);

/// What one step eats: padded to its own longest text.
struct TextBatch {
  Tensor input;   ///< i64 [count, 3, tokens]: ids, token types, and 1 up to the end of the text
  Tensor labels;  ///< i64 [count]
  int64_t count = 0;
};

/// Brings the texts of this rank, an epoch at a time. `order` says which text comes when.
class TextLoader {
 public:
  TextLoader(const Texts& texts, data::Sampler order, int64_t batch_size, int64_t padding_id, Device device)
      : texts_(texts), order_(order), batch_(batch_size), padding_(padding_id), device_(device) {}
  int64_t steps() const { return (order_.size() + batch_ - 1) / batch_; }
  int64_t texts() const { return order_.size(); }  ///< of this rank in an epoch
  /// next() brings batch `batch` of the epoch, and so on.
  void start(int64_t epoch, int64_t batch = 0) { epoch_ = epoch, position_ = batch * batch_; }
  std::optional<TextBatch> next();

 private:
  const Texts& texts_;
  data::Sampler order_;
  int64_t batch_, padding_;
  Device device_;
  int64_t epoch_ = 0, position_ = 0;
};

}  // namespace weft::finetune
