// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/evaluation.h"

#include <chrono>
#include <cmath>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/cross_entropy.h"
#include "core/trace.h"

namespace weft::train_image {

namespace {

/// Loss sum, right answers, pictures and confusion of all ranks.
void add_ranks(Evaluation& result, double& loss_sum, const support::Ranks& ranks) {
  if (ranks.size() == 1) return;
  std::vector<double> values{loss_sum, static_cast<double>(result.correct), static_cast<double>(result.images)};
  for (const int64_t count : result.confusion.counts()) values.push_back(static_cast<double>(count));
  values = ranks.sum(values, "evaluation");
  loss_sum = values[0];
  result.correct = std::llround(values[1]);
  result.images = std::llround(values[2]);
  std::vector<int64_t> counts;
  for (size_t i = 3; i < values.size(); ++i) counts.push_back(std::llround(values[i]));
  result.confusion.set_counts(std::move(counts));
}

}  // namespace

Evaluation evaluate(nn::Module& model, const std::function<Tensor(const Tensor&)>& forward, data::Loader* loader,
                    int classes, DType precision, const support::Ranks& ranks) {
  const TraceScope scope("evaluate");
  const bool was_training = model.is_training();
  model.eval();
  const NoGrad no_grad;
  const auto start = std::chrono::steady_clock::now();
  Evaluation result{.confusion = support::ConfusionMatrix(classes)};
  double loss_sum = 0;
  if (loader) loader->start(0);
  while (loader) {
    const auto batch = loader->next();
    if (!batch) break;
    Tensor logits;
    {
      const Autocast low(precision);
      logits = forward(batch->images);
    }
    loss_sum += cross_entropy(logits, batch->labels, {.reduction = Reduction::sum}).item();
    const std::vector<int64_t> guesses = argmax(logits, 1).to_vector<int64_t>();
    const std::vector<int64_t> truths = batch->labels.to_vector<int64_t>();
    for (size_t i = 0; i < truths.size(); ++i) {
      result.confusion.add(truths[i], guesses[i]);
      result.correct += truths[i] == guesses[i];
    }
    result.images += batch->count;
  }
  add_ranks(result, loss_sum, ranks);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double images = static_cast<double>(result.images);
  result.loss = loss_sum / images;
  result.accuracy = static_cast<double>(result.correct) / images;
  result.images_per_second = images / seconds;
  model.train(was_training);
  return result;
}

}  // namespace weft::train_image
