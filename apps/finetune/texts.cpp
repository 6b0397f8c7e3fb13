// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/texts.h"

#include <algorithm>

#include "core/text.h"

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

int64_t longest_of(const Texts& texts) {
  size_t longest = 0;
  for (const data::Encoding& encoding : texts.encodings) longest = std::max(longest, encoding.ids.size());
  return static_cast<int64_t>(longest);
}

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// `most`: tokens of the longest text of all.
std::vector<Tensor> padded(const std::vector<Text>& batch, int64_t padding, bool regression, int64_t multiple,
                           int64_t most) {
  size_t longest = 0;
  for (const Text& text : batch) longest = std::max(longest, text.encoding->ids.size());
  longest = static_cast<size_t>(std::min(round_up(static_cast<int64_t>(longest), multiple), most));
  std::vector<int64_t> input, classes;
  std::vector<float> scores;
  for (const auto& [encoding, label] : batch) {
    const size_t length = encoding->ids.size();
    const auto append = [&](const std::vector<int64_t>& values, int64_t after) {
      input.insert(input.end(), values.begin(), values.end());
      input.insert(input.end(), longest - length, after);
    };
    append(encoding->ids, padding);
    append(encoding->token_types, 0);
    append(std::vector<int64_t>(length, 1), 0);
    if (regression)
      scores.push_back(static_cast<float>(label));
    else
      classes.push_back(static_cast<int64_t>(label));
  }
  const auto count = static_cast<int64_t>(batch.size());
  return {Tensor::from(input, {count, 3, static_cast<int64_t>(longest)}),
          regression ? Tensor::from(scores) : Tensor::from(classes)};
}

}  // namespace

Texts encode(const data::TextTable& table, const Labels& labels, const data::TextEncoder& tokens,
             const nn::BertOptions& model, int64_t max_length) {
  Texts texts{.encodings = {}, .labels = labels.of(table), .regression = labels.regression};
  for (const data::LabelledText& row : table.rows) {
    data::Encoding encoding =
        table.pairs ? tokens.encode(row.first, row.second, max_length) : tokens.encode(row.first, max_length);
    const int64_t most = *std::max_element(encoding.ids.begin(), encoding.ids.end());
    WEFT_CHECK(most < model.vocabulary, "data: ", table.description, ": the token '",
               printable(tokens.token_text(most)), "' has the id ", most, ", but the weights' embeddings have ",
               model.vocabulary, " rows (vocab_size)");
    // A model of no token types at all passes over them.
    WEFT_CHECK(model.token_types == 0 || encoding.token_types.back() < model.token_types, "data: ", table.description,
               ": the second text of a pair needs 2 token types, but the weights have ", model.token_types,
               " (type_vocab_size)");
    texts.encodings.push_back(std::move(encoding));
  }
  return texts;
}

int64_t padding_step(const Texts& texts) { return round_up((longest_of(texts) + kMostLengths - 1) / kMostLengths, 8); }

TextLoader::TextLoader(const Texts& texts, const data::Sampler& order, int64_t batch_size, int64_t padding_id,
                       Device device, int64_t multiple)
    : Loader(std::make_shared<const TextSet>(TextSet{texts}), order,
             {.batch_size = batch_size, .workers = 0, .device = device},
             [padding_id, regression = texts.regression, multiple, most = longest_of(texts)](const auto& batch) {
               return padded(batch, padding_id, regression, multiple, most);
             }) {
  start(0);
}

}  // namespace weft::finetune
