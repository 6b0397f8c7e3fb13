// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/record.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autocast.h"
#include "core/choose_device.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/trace.h"
#include "train/loader_task.h"
#include "train/memory.h"
#include "train/record/class_names.h"
#include "train/record/stopwatch.h"

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
  const Autocast low(e.options.dtype());
  return e.strategy->forward(images);
}

}  // namespace

Evaluation evaluate(Experiment& e, train::Progress& progress) {
  const TraceScope scope("evaluate");
  const bool was_training = e.model->is_training();
  e.model->eval();
  const train::Stopwatch watch;
  Evaluation result{.confusion = train::ConfusionMatrix(e.classes)};
  double loss_sum = 0;
  const auto each = [&](const data::Batch& batch) {
    const Tensor logits = forward(e, batch.images);
    loss_sum += cross_entropy(logits, batch.labels, {.reduction = Reduction::sum}).item();
    const std::vector<int64_t> guesses = argmax(logits, 1).to_vector<int64_t>();
    const std::vector<int64_t> truths = batch.labels.to_vector<int64_t>();
    for (size_t i = 0; i < truths.size(); ++i) {
      result.confusion.add(truths[i], guesses[i]);
      result.correct += truths[i] == guesses[i];
    }
    result.images += batch.count;
  };
  train::evaluate_batches(e.ranks, *e.strategy, progress, "validation", e.val_loader.get(), each, [&] {
    forward(e, Tensor::zeros({1, e.height, e.width, e.channels}, DType::f32, e.device));
  });
  add_ranks(result, loss_sum, e.ranks);
  const double images = static_cast<double>(result.images);
  result.loss = loss_sum / images;
  result.accuracy = static_cast<double>(result.correct) / images;
  result.images_per_second = images / watch.seconds();
  e.model->train(was_training);
  return result;
}

Record::Record(const Experiment& experiment, const train::RunFolder& folder, int64_t step)
    : experiment_(experiment),
      folder_(folder),
      metrics_(folder.metrics(), experiment.options.resume.empty() ? -1 : step),
      board_(folder.path(), experiment.options.resume.empty() ? -1 : step) {
  const Options& o = experiment.options;
  const int ranks = experiment.ranks.size();
  folder_.write_config(
      str("# ", ranks, ranks == 1 ? " rank: " : " ranks: ", experiment.global_batch(), " images per step\n", o.toml));
  train::write_class_names(folder_.path(), experiment.val_set->classes());
  if (step > 0) return;
  board_.hyper_parameters({{"model", o.model},
                           {"lr", o.lr},
                           {"batch_size", static_cast<double>(experiment.global_batch())},
                           {"optimizer", o.optimizer},
                           {"weight_decay", o.weight_decay},
                           {"precision", o.precision}});
  show_samples();
}

void Record::show_samples() {
  if (!train::have_png()) return;
  std::vector<train::Canvas> samples;
  const int64_t count = std::min<int64_t>(32, experiment_.train_set->size());
  for (int64_t i = 0; i < count; ++i) {
    const data::Image stored = experiment_.train_set->get(i);
    if (std::max(stored.width, stored.height) > 512) continue;
    train::Canvas sample(static_cast<int>(stored.width), static_cast<int>(stored.height));
    for (int64_t p = 0; p < stored.width * stored.height; ++p)
      for (int64_t c = 0; c < 3; ++c)
        sample.pixels[p * 3 + c] = stored.pixels[p * stored.channels + std::min(c, stored.channels - 1)];
    samples.push_back(std::move(sample));
  }
  if (!samples.empty()) board_.image("samples", train::grid(samples, 8), 0);
}

void Record::steps(const train::Position& at, const train::StepSums::Totals& totals, double lr, double gradient_norm) {
  const double samples = static_cast<double>(totals.samples);
  metrics_.append({.epoch = at.epoch + 1,
                   .step = at.step,
                   .split = train::Split::steps,
                   .loss = totals.loss / samples,
                   .accuracy = totals.correct / samples,
                   .lr = lr,
                   .gradient_norm = gradient_norm});
  board_.scalar("loss/steps", totals.loss / samples, at.step);
  board_.scalar("gradient_norm", gradient_norm, at.step);
}

void Record::epoch(const train::Position& at, const train::Epoch& training, const Evaluation& evaluation) {
  metrics_.append({.epoch = at.epoch,
                   .step = at.step,
                   .split = train::Split::train,
                   .loss = training.loss,
                   .accuracy = training.accuracy,
                   .lr = training.lr,
                   .images_per_second = training.pace.images_per_second,
                   .data_wait = std::max(training.pace.data_wait, 0.0),
                   .peak_tensor_bytes = train::peak_tensor_bytes(experiment_.device)});
  metrics_.append({.epoch = at.epoch,
                   .step = at.step,
                   .split = train::Split::val,
                   .loss = evaluation.loss,
                   .accuracy = evaluation.accuracy,
                   .lr = training.lr,
                   .images_per_second = evaluation.images_per_second});
  board_.scalar("loss/train", training.loss, at.step);
  board_.scalar("loss/val", evaluation.loss, at.step);
  board_.scalar("accuracy/train", training.accuracy, at.step);
  board_.scalar("accuracy/val", evaluation.accuracy, at.step);
  board_.scalar("lr", training.lr, at.step);
  board_.scalar("images_per_second", training.pace.images_per_second, at.step);
  board_.scalar("peak_tensor_bytes", static_cast<double>(train::peak_tensor_bytes(experiment_.device)), at.step);
  if (train::have_png()) board_.image("confusion", evaluation.confusion.draw(experiment_.val_set->classes()), at.step);
}

void Record::end(bool finished, const train::Position& at, const Evaluation& last, double images_per_second) {
  const Experiment& e = experiment_;
  constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();  // null in the file
  board_.end(finished);
  folder_.write_summary({{"finished", finished},
                         {"model", e.options.model},
                         {"data", e.options.data},
                         {"device", weft::describe(e.device)},
                         {"ranks", static_cast<int64_t>(e.ranks.size())},
                         {"epochs", at.epoch},
                         {"steps", at.step},
                         {"val_accuracy", last.images > 0 ? last.accuracy : kNotKnown},
                         {"val_loss", last.images > 0 ? last.loss : kNotKnown},
                         {"best_val_accuracy", at.best_epoch > 0 ? at.best_score : kNotKnown},
                         {"best_epoch", at.best_epoch},
                         {"images_per_second", images_per_second},
                         {"peak_memory_bytes", train::peak_memory_bytes()},
                         {"peak_tensor_bytes", train::peak_tensor_bytes(e.device)}});
}

}  // namespace weft::train_image
