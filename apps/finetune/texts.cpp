// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/texts.h"

#include <algorithm>

namespace weft::finetune {

Texts encode(const data::TextTable& table, const data::WordPiece& pieces, int64_t max_length) {
  Texts texts;
  for (const data::LabelledText& row : table.rows) {
    WEFT_CHECK(row.label >= 0, "data: ", table.description, ": the texts have no labels");
    texts.encodings.push_back(table.pairs ? pieces.encode(row.first, row.second, max_length)
                                          : pieces.encode(row.first, max_length));
    texts.labels.push_back(row.label);
  }
  return texts;
}

std::optional<TextBatch> TextLoader::next() {
  const int64_t count = std::min(batch_, order_.size() - position_);
  if (count <= 0) return {};
  std::vector<size_t> rows;
  size_t longest = 0;
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back(static_cast<size_t>(order_.index(epoch_, position_ + i)));
    longest = std::max(longest, texts_.encodings[rows.back()].ids.size());
  }
  position_ += count;
  std::vector<int64_t> input, labels;
  for (const size_t row : rows) {
    const data::Encoding& encoding = texts_.encodings[row];
    const size_t length = encoding.ids.size();
    const auto append = [&](const std::vector<int64_t>& values, int64_t behind) {
      input.insert(input.end(), values.begin(), values.end());
      input.insert(input.end(), longest - length, behind);
    };
    append(encoding.ids, padding_);
    append(encoding.token_types, 0);
    append(std::vector<int64_t>(length, 1), 0);
    labels.push_back(texts_.labels[row]);
  }
  return TextBatch{Tensor::from(input, {count, 3, static_cast<int64_t>(longest)}, device_),
                   Tensor::from(labels, device_), count};
}

}  // namespace weft::finetune
