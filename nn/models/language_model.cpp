// SPDX-License-Identifier: Apache-2.0
#include "nn/models/language_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/random.h"

namespace weft::nn {
namespace {

std::vector<Tensor> tensors_of(const LanguageModel& model) {
  std::vector<Tensor> tensors;
  for (const NamedTensor& parameter : const_cast<LanguageModel&>(model).parameters())  // which only names them
    tensors.push_back(parameter.tensor);
  return tensors;
}

/// One of the tokens by their logits [vocabulary]; `random` in [0, 1).
int64_t draw(std::span<const float> logits, const GenerateOptions& options, double random) {
  const auto count = static_cast<int64_t>(logits.size());
  WEFT_CHECK(std::none_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }),
             "generate: the logits are not finite");
  if (options.temperature == 0) return std::max_element(logits.begin(), logits.end()) - logits.begin();
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto likelier = [&](int64_t a, int64_t b) {  // the first of two equals, so that the result is unique
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  const double most = *std::max_element(logits.begin(), logits.end());
  const auto share = [&](int64_t id) {
    return std::exp((logits[static_cast<size_t>(id)] - most) / options.temperature);
  };
  const int64_t kept = options.top_k > 0 ? std::min(options.top_k, count) : count;
  const auto begin = order.begin();
  if (kept < count) std::nth_element(begin, begin + kept, order.end(), likelier);
  double whole = 0;
  for (int64_t i = 0; i < kept; ++i) whole += share(order[static_cast<size_t>(i)]);
  WEFT_CHECK(std::isfinite(whole), "generate: the logits are not finite");
  // Tokens are sorted from the likeliest on, as far as the drawn one lies.
  std::vector<double> sums;
  for (int64_t sorted = 0; sorted < kept;) {
    const int64_t next = std::min(kept, std::max<int64_t>(4 * sorted, 64));
    if (next < kept) std::nth_element(begin + sorted, begin + next, begin + kept, likelier);
    std::sort(begin + sorted, begin + next, likelier);
    for (; sorted < next; ++sorted)
      sums.push_back((sums.empty() ? 0 : sums.back()) + share(order[static_cast<size_t>(sorted)]));
    double limit = whole;
    if (options.top_p < 1) {  // the token that reaches the share is the last one kept
      const auto reaches = std::lower_bound(sums.begin(), sums.end(), options.top_p * whole);
      if (reaches == sums.end() && next < kept) continue;
      limit = *std::min(reaches, sums.end() - 1);
    }
    const auto place = std::upper_bound(sums.begin(), sums.end(), random * limit) - sums.begin();
    if (place < next) return order[static_cast<size_t>(place)];
  }
  return order[static_cast<size_t>(kept - 1)];
}

}  // namespace

LanguageModel::Ids LanguageModel::read_ids(const Tensor& sample) const {
  if (sample.dim() != 3) return {sample, {.tokens = sample.dim() > 0 ? sample.size(-1) : 0}};
  WEFT_CHECK(sample.size(1) == 2 && sample.dtype() == DType::i64, kind(),
             ": expected ids [N, tokens], or with the starts of documents i64 [N, 2, tokens], got ", sample);
  return {sample.select(1, 0), {sample.size(2), std::make_shared<const Documents>(sample.select(1, 1))}};
}

Tensor LanguageModel::mask_of(const std::vector<int64_t>& padding, int64_t rows, int64_t tokens, Device device) {
  if (padding.empty()) return {};
  WEFT_CHECK(static_cast<int64_t>(padding.size()) == rows, "LanguageModel: expected the padding of ", rows,
             " rows, got that of ", padding.size());
  for (const int64_t count : padding)
    WEFT_CHECK(count >= 0 && count < tokens, "LanguageModel: expected padding of 0 to ", tokens - 1, " tokens, got ",
               count);
  return ge(Tensor::arange(tokens, DType::i64, device), Tensor::from(padding, {rows, 1}, device));
}

std::vector<std::vector<int64_t>> generate_batch(const LanguageModel& model,
                                                 const std::vector<std::vector<int64_t>>& prompts,
                                                 const GenerateOptions& options,
                                                 const std::function<bool(size_t, int64_t)>& each) {
  WEFT_CHECK(!prompts.empty(), "generate: expected at least one prompt, got none");
  for (const std::vector<int64_t>& prompt : prompts)
    WEFT_CHECK(!prompt.empty(), "generate: expected a prompt of at least one token, got none");
  WEFT_CHECK(options.temperature >= 0, "generate: expected a temperature of at least 0, got ", options.temperature);
  WEFT_CHECK(options.top_p > 0 && options.top_p <= 1, "generate: expected a top_p in (0, 1], got ", options.top_p);
  const NoGrad no_grad;
  const LowCopies copies(tensors_of(model));
  const int64_t positions = model.positions();
  const Device device = model.embedding().weight.device();
  struct Row {
    size_t number;
    std::vector<int64_t> text;
    int64_t begin;  // the first token that the model still sees

    int64_t seen() const { return static_cast<int64_t>(text.size()) - begin; }
  };
  std::vector<Row> rows;
  std::vector<std::vector<int64_t>> results(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i)
    rows.push_back({i, prompts[i], std::max<int64_t>(static_cast<int64_t>(prompts[i].size()) - positions, 0)});
  std::vector<KeysAndValues> past;
  std::vector<int64_t> padding;
  int64_t width = 0;  // the tokens in `past`
  for (int64_t step = 0; step < options.tokens && !rows.empty(); ++step) {
    bool begins = past.empty() || width == positions;
    for (Row& row : rows)
      if (row.seen() > positions) {
        row.begin = static_cast<int64_t>(row.text.size()) - std::max<int64_t>(positions / 2, 1);
        begins = true;
      }
    std::vector<int64_t> ids;
    if (begins) {
      padding.clear();
      width = std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
                return a.seen() < b.seen();
              })->seen();
      for (const Row& row : rows) {
        padding.push_back(width - row.seen());
        ids.insert(ids.end(), static_cast<size_t>(padding.back()), 0);
        ids.insert(ids.end(), row.text.begin() + row.begin, row.text.end());
      }
      if (std::all_of(padding.begin(), padding.end(), [](int64_t count) { return count == 0; })) padding.clear();
      past.assign(static_cast<size_t>(model.layers()),
                  {.capacity = std::min(positions - width, options.tokens - step - 1) + width});
    } else {
      ++width;
      for (const Row& row : rows) ids.push_back(row.text.back());
    }
    const auto count = static_cast<int64_t>(rows.size()), fresh = static_cast<int64_t>(ids.size()) / count;
    const Tensor logits = model.extend(Tensor::from(ids, {count, fresh}, device), past, padding).select(1, fresh - 1);
    const std::vector<float> all = logits.to(DType::f32).to(Device{}).contiguous().to_vector<float>();
    const size_t vocabulary = all.size() / rows.size();
    const size_t drawn = options.below > 0 ? std::min(vocabulary, static_cast<size_t>(options.below)) : vocabulary;
    // One number for all rows: so each is the text that its prompt alone would get.
    const double random = options.temperature > 0 ? uniform({1}, 0, 1, DType::f64).item() : 0;
    std::vector<int64_t> kept;
    for (size_t i = 0; i < rows.size(); ++i) {
      Row& row = rows[i];
      const int64_t token = draw(std::span(all).subspan(i * vocabulary, drawn), options, random);
      if (std::find(options.end.begin(), options.end.end(), token) != options.end.end()) continue;
      row.text.push_back(token);
      results[row.number].push_back(token);
      if (!each || each(row.number, token)) kept.push_back(static_cast<int64_t>(i));
    }
    if (kept.size() == rows.size() || kept.empty()) {
      if (kept.empty()) rows.clear();
      continue;
    }
    const Tensor index = Tensor::from(kept).to(device);
    for (KeysAndValues& layer : past)
      layer = {index_select(layer.keys, 0, index), index_select(layer.values, 0, index), layer.capacity};
    std::vector<Row> rest;
    std::vector<int64_t> rest_padding;
    for (const int64_t i : kept) {
      rest.push_back(std::move(rows[static_cast<size_t>(i)]));
      if (!padding.empty()) rest_padding.push_back(padding[static_cast<size_t>(i)]);
    }
    rows = std::move(rest), padding = std::move(rest_padding);
  }
  return results;
}

std::vector<int64_t> generate(const LanguageModel& model, const std::vector<int64_t>& prompt,
                              const GenerateOptions& options, const std::function<void(int64_t)>& each) {
  return generate_batch(model, {prompt}, options, [&](size_t, int64_t token) {
    if (each) each(token);
    return true;
  })[0];
}

}  // namespace weft::nn
