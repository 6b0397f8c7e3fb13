// SPDX-License-Identifier: Apache-2.0
#include "nn/models/language_model.h"

#include <algorithm>
#include <cmath>

#include "core/autograd.h"
#include "core/ops/random.h"

namespace weft::nn {
namespace {

/// One of the tokens by their logits [vocabulary].
int64_t draw(const std::vector<float>& logits, const GenerateOptions& options) {
  const auto count = static_cast<int64_t>(logits.size());
  WEFT_CHECK(std::none_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }),
             "generate: the logits are not finite");
  if (options.temperature == 0) return std::max_element(logits.begin(), logits.end()) - logits.begin();
  std::vector<int64_t> order(logits.size());
  for (int64_t id = 0; id < count; ++id) order[static_cast<size_t>(id)] = id;
  const auto likelier = [&](int64_t a, int64_t b) {  // the first of two equals, so that the result is unique
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  const int64_t kept = options.top_k > 0 ? std::min(options.top_k, count) : count;
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), likelier);
  order.resize(static_cast<size_t>(kept));
  const double most = logits[static_cast<size_t>(order[0])];
  std::vector<double> sums;
  double sum = 0;
  for (const int64_t id : order)
    sums.push_back(sum += std::exp((logits[static_cast<size_t>(id)] - most) / options.temperature));
  WEFT_CHECK(std::isfinite(sum), "generate: the logits are not finite");
  if (options.top_p < 1) {  // the token that reaches the share is the last one kept
    const auto reaches = std::lower_bound(sums.begin(), sums.end(), options.top_p * sum);
    sum = *std::min(reaches, sums.end() - 1);
  }
  const double point = uniform({1}, 0, 1, DType::f64).item() * sum;
  const auto place = static_cast<size_t>(std::upper_bound(sums.begin(), sums.end(), point) - sums.begin());
  return order[std::min(place, order.size() - 1)];
}

}  // namespace

std::vector<int64_t> generate(const LanguageModel& model, const std::vector<int64_t>& prompt,
                              const GenerateOptions& options, const std::function<void(int64_t)>& each) {
  WEFT_CHECK(!prompt.empty(), "generate: expected a prompt of at least one token, got none");
  WEFT_CHECK(options.temperature >= 0, "generate: expected a temperature of at least 0, got ", options.temperature);
  const NoGrad no_grad;
  WEFT_CHECK(options.top_p > 0 && options.top_p <= 1, "generate: expected a top_p in (0, 1], got ", options.top_p);
  const int64_t positions = model.positions();
  std::vector<int64_t> text = prompt;
  std::vector<KeysAndValues> past;
  int64_t known = 0;  // number of the text's tokens in `past`
  int64_t begin = std::max<int64_t>(static_cast<int64_t>(text.size()) - positions, 0);
  for (int64_t i = 0; i < options.tokens; ++i) {
    const auto end = static_cast<int64_t>(text.size());
    if (end - begin > positions) {
      begin = end - std::max<int64_t>(positions / 2, 1);
      past.clear();
    }
    if (past.empty()) known = begin;
    const std::vector<int64_t> fresh(text.begin() + known, text.end());
    const Tensor ids = Tensor::from(fresh, {1, end - known}, model.embedding().weight.device());
    const Tensor logits = model.extend(ids, past).select(1, end - known - 1);
    known = end;
    std::vector<float> each_logit = logits.to(DType::f32).to(Device{}).reshape({-1}).to_vector<float>();
    if (options.below > 0) each_logit.resize(std::min(each_logit.size(), static_cast<size_t>(options.below)));
    text.push_back(draw(each_logit, options));
    if (std::find(options.end.begin(), options.end.end(), text.back()) != options.end.end()) {
      text.pop_back();
      break;
    }
    if (each) each(text.back());
  }
  return {text.begin() + static_cast<int64_t>(prompt.size()), text.end()};
}

}  // namespace weft::nn
