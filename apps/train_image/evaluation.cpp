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

Tensor forward(Experiment& e, const Tensor& images) {
  const Autocast low(e.precision);
  return e.parallel->forward(images);
}

}  // namespace

Evaluation evaluate(Experiment& e, support::Progress& progress) {
  const TraceScope scope("evaluate");
  const bool was_training = e.model->is_training();
  e.model->eval();
  const NoGrad no_grad;
  const auto start = std::chrono::steady_clock::now();
  Evaluation result{.confusion = support::ConfusionMatrix(e.classes)};
  double loss_sum = 0;
  int64_t steps = 0, most = 0;
  if (e.parallel->is_sharded())
    most = e.ranks.max(e.val_loader ? e.val_loader->steps_per_epoch() : 0, "steps of the evaluation");
  progress.begin("validation", e.val_loader ? e.val_loader->steps_per_epoch() : 0);
  if (e.val_loader) e.val_loader->start(0);
  while (e.val_loader) {
    const auto batch = e.val_loader->next();
    if (!batch) break;
    const Tensor logits = forward(e, batch->images);
    loss_sum += cross_entropy(logits, batch->labels, {.reduction = Reduction::sum}).item();
    const std::vector<int64_t> guesses = argmax(logits, 1).to_vector<int64_t>();
    const std::vector<int64_t> truths = batch->labels.to_vector<int64_t>();
    for (size_t i = 0; i < truths.size(); ++i) {
      result.confusion.add(truths[i], guesses[i]);
      result.correct += truths[i] == guesses[i];
    }
    result.images += batch->count;
    ++steps;
    progress.step({.images = batch->count * e.ranks.size()});
  }
  progress.drop();
  // With shards the others need this rank's part of the weights for each of their steps.
  for (; steps < most; ++steps) forward(e, Tensor::zeros({1, e.height, e.width, e.channels}, DType::f32, e.device));
  add_ranks(result, loss_sum, e.ranks);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double images = static_cast<double>(result.images);
  result.loss = loss_sum / images;
  result.accuracy = static_cast<double>(result.correct) / images;
  result.images_per_second = images / seconds;
  e.model->train(was_training);
  return result;
}

}  // namespace weft::train_image
