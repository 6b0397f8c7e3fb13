// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/phase.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "apps/support/progress.h"
#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/compare.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/sum.h"

namespace weft::linear_probe {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

DType precision_of(const Options& options) { return options.precision == "bf16" ? DType::bf16 : DType::f32; }

/// The line that the workflow's program prints of a tensor that holds the accuracy in per cent.
std::string accuracy_line(double accuracy, Device device) {
  char number[32];
  std::snprintf(number, sizeof number, "%.4f", 100 * accuracy);
  const std::string where = device.kind == DeviceKind::cuda ? str(", device='cuda:", device.index, "'") : "";
  return str("{'validation accuracy': tensor(", number, where, ")}");
}

}  // namespace

Record::Record(const Options& options) : folder(options.out), metrics(folder.metrics()), board(folder.path()) {
  folder.write_config(options.toml);
}

Tensor Phase::forward(support::Parallel& parallel, const Tensor& input) const {
  const Autocast low(precision_of(options_));
  return parallel.forward(input);
}

PhaseResult Phase::run(support::Parallel& parallel, nn::Module& model, double lr, Source& training,
                       Source& validation) {
  optim::Adam adam(parallel.parameters(), {.lr = lr});
  if (precision_of(options_) == DType::bf16 && !parallel.is_sharded()) adam.flat()->keep_compute_copy(DType::bf16);
  PhaseResult result;
  for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    std::cout << ranks_.rank() << " epoch" << std::endl;
    model.train();
    const auto start = std::chrono::steady_clock::now();
    result.train_loss = train_epoch(parallel, adam, training, epoch);
    result.images_per_second = static_cast<double>(trained_images_) / seconds_since(start);
    result.accuracy = validate(parallel, model, validation);
    result.best_accuracy = std::max(result.best_accuracy, result.accuracy);
    report(first_epoch_ + epoch + 1, lr, result.train_loss, result.accuracy, result.images_per_second);
  }
  return result;
}

double Phase::train_epoch(support::Parallel& parallel, optim::Adam& adam, Source& training, int64_t epoch) {
  std::unique_ptr<support::Progress> progress;  // of rank 0
  if (ranks_.is_first()) {
    progress = std::make_unique<support::Progress>();
    progress->begin(str("epoch ", epoch + 1, '/', options_.epochs), training.steps());
  }
  Tensor loss_sum;
  int64_t images = 0;
  training.start(epoch);
  while (auto examples = training.next()) {
    like_ = examples->input;
    const Tensor loss = cross_entropy(forward(parallel, examples->input), examples->labels);
    adam.zero_grad();
    loss.backward();
    adam.step();
    ++step_;
    const Tensor weighted = loss.detach().to(DType::f64).clone().mul_(static_cast<double>(examples->count));
    if (loss_sum.defined())
      loss_sum.add_(weighted);
    else
      loss_sum = weighted;
    images += examples->count;
    if (progress) progress->step({.images = examples->count * ranks_.size(), .loss = loss.item()});
  }
  if (progress) progress->end();
  const std::vector<double> sums = ranks_.sum({loss_sum.item(), static_cast<double>(images)}, "loss of the epoch");
  WEFT_CHECK(sums[0] == sums[0], "the loss of epoch ", epoch + 1, " is not a number. Choose a smaller --lr");
  trained_images_ = static_cast<int64_t>(sums[1]);
  return sums[0] / sums[1];
}

double Phase::validate(support::Parallel& parallel, nn::Module& model, Source& validation) const {
  const NoGrad no_grad;
  model.eval();
  int64_t steps = 0, right = 0, count = 0;
  validation.start(0);
  while (auto examples = validation.next()) {
    const Tensor guesses = argmax(forward(parallel, examples->input), 1);
    right += static_cast<int64_t>(sum(eq(guesses, examples->labels).to(DType::i64)).item());
    count += examples->count;
    ++steps;
  }
  if (parallel.is_sharded()) {  // the others need this rank's part of the weights for each of their steps
    const int64_t most = ranks_.max(steps, "steps of the validation");
    for (; steps < most; ++steps) forward(parallel, like_);
  }
  const std::vector<double> sums =
      ranks_.sum({static_cast<double>(right), static_cast<double>(count)}, "right answers");
  return sums[0] / sums[1];
}

void Phase::report(int64_t epoch, double lr, double loss, double accuracy, double images_per_second) {
  if (!ranks_.is_first()) return;
  std::cout << accuracy_line(accuracy, ranks_.device()) << std::endl;
  if (!record_) return;
  record_->metrics.append({.epoch = epoch,
                           .step = step_,
                           .split = support::Split::train,
                           .loss = loss,
                           .accuracy = accuracy,
                           .lr = lr,
                           .images_per_second = images_per_second});
  record_->board.scalar("validation accuracy", 100 * accuracy, epoch);
  record_->board.scalar("training loss", loss, epoch);
}

}  // namespace weft::linear_probe
