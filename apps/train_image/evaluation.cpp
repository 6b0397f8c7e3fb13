// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/evaluation.h"

#include <cmath>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/reduce.h"
#include "core/trace.h"
#include "train/stopwatch.h"

namespace weft::train_image {

namespace {

/// Loss sum, right answers, images and confusion of all ranks.
void add_ranks(Evaluation& result, double& loss_sum, const dist::World& ranks) {
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
  return e.strategy->forward(images);
}

}  // namespace

Evaluation evaluate(Experiment& e, train::Progress& progress) {
  const TraceScope scope("evaluate");
  const bool was_training = e.model->is_training();
  e.model->eval();
  const NoGrad no_grad;
  const train::Stopwatch watch;
  Evaluation result{.confusion = train::ConfusionMatrix(e.classes)};
  double loss_sum = 0;
  const int64_t steps = e.val_loader ? e.val_loader->steps_per_epoch() : 0;
  const int64_t idle = e.strategy->steps_to_join(e.ranks, steps);
  progress.begin("validation", steps);
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
    progress.step({.images = batch->count * e.ranks.size()});
  }
  progress.drop();
  for (int64_t step = 0; step < idle; ++step)
    forward(e, Tensor::zeros({1, e.height, e.width, e.channels}, DType::f32, e.device));
  add_ranks(result, loss_sum, e.ranks);
  const double images = static_cast<double>(result.images);
  result.loss = loss_sum / images;
  result.accuracy = static_cast<double>(result.correct) / images;
  result.images_per_second = images / watch.seconds();
  e.model->train(was_training);
  return result;
}

}  // namespace weft::train_image
