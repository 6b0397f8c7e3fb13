// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/texts.h"

#include <algorithm>

namespace weft::finetune {
namespace {

struct TextSet {
  const Texts& texts;
  int64_t size() const { return static_cast<int64_t>(texts.labels.size()); }
  Text get(int64_t index) const {
    const auto row = static_cast<size_t>(index);
    return {&texts.encodings[row], texts.labels[row]};
  }
};

std::vector<Tensor> padded(const std::vector<Text>& batch, int64_t padding) {
  size_t longest = 0;
  for (const Text& text : batch) longest = std::max(longest, text.encoding->ids.size());
  std::vector<int64_t> input, labels;
  for (const auto& [encoding, label] : batch) {
    const size_t length = encoding->ids.size();
    const auto append = [&](const std::vector<int64_t>& values, int64_t after) {
      input.insert(input.end(), values.begin(), values.end());
      input.insert(input.end(), longest - length, after);
    };
    append(encoding->ids, padding);
    append(encoding->token_types, 0);
    append(std::vector<int64_t>(length, 1), 0);
    labels.push_back(label);
  }
  const auto count = static_cast<int64_t>(batch.size());
  return {Tensor::from(input, {count, 3, static_cast<int64_t>(longest)}), Tensor::from(labels)};
}

}  // namespace

Texts encode(const data::TextTable& table, const data::TextEncoder& tokens, int64_t max_length) {
  Texts texts;
  for (const data::LabelledText& row : table.rows) {
    WEFT_CHECK(row.label >= 0, "data: ", table.description, ": the texts have no labels");
    texts.encodings.push_back(table.pairs ? tokens.encode(row.first, row.second, max_length)
                                          : tokens.encode(row.first, max_length));
    texts.labels.push_back(row.label);
  }
  return texts;
}

TextLoader::TextLoader(const Texts& texts, const data::Sampler& order, int64_t batch_size, int64_t padding_id,
                       Device device)
    : Loader(std::make_shared<const TextSet>(TextSet{texts}), order,
             {.batch_size = batch_size, .workers = 0, .device = device},
             [padding_id](const std::vector<Text>& batch) { return padded(batch, padding_id); }) {
  start(0);
}

}  // namespace weft::finetune
