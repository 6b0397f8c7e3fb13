// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/phase.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/compare.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/mul.h"
#include "core/ops/sum.h"
#include "kernels/allocator.h"
#include "optim/layer_decay.h"

namespace weft::linear_probe {
namespace {

constexpr int64_t kReadEvery = 20;  // steps between two looks at the loss on a GPU

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

std::vector<optim::ParameterGroup> groups(const std::vector<NamedTensor>& parameters, const PhaseOptions& how,
                                          double weight_decay) {
  if (how.layer_decay < 1)
    return optim::by_layer(parameters, {.lr = how.lr, .factor = how.layer_decay, .weight_decay = weight_decay});
  return weight_decay > 0 ? optim::without_decay_on_vectors(parameters)
                          : std::vector<optim::ParameterGroup>{{parameters}};
}

}  // namespace

Phase::Phase(const Options& options, const support::Ranks& ranks, Session& session, support::Parallel& parallel,
             nn::Module& model, PhaseOptions how)
    : options_(options),
      ranks_(ranks),
      session_(session),
      parallel_(parallel),
      model_(model),
      how_(std::move(how)),
      adam_(std::make_unique<optim::AdamW>(groups(parallel.parameters(), how_, options.weight_decay),
                                           optim::AdamWOptions{.lr = how_.lr, .weight_decay = options.weight_decay})),
      averages_(support::make_averages(options.averages, *adam_, model)) {
  if (precision_of(options_) == DType::bf16 && !parallel_.is_sharded()) adam_->flat()->keep_compute_copy(DType::bf16);
  session_.load_optimizer(parallel_, *adam_, averages_.get());
  if (ranks_.is_first()) progress_ = std::make_unique<support::Progress>();
}

Tensor Phase::forward(const Tensor& input) const {
  const Autocast low(precision_of(options_));
  return parallel_.forward(input);
}

bool Phase::run(Source& training, Source& validation) {
  Position& at = session_.position();
  bool stopped = session_.stop().must_stop(at.step);
  kernels::CachingAllocator::of(ranks_.device()).reset_peak();
  while (!stopped && at.epoch < options_.epochs) {
    std::cout << ranks_.rank() << " epoch" << std::endl;
    const auto start = std::chrono::steady_clock::now();
    const int64_t before = at.images;
    stopped = !train_epoch(training);
    const double speed = static_cast<double>(at.images - before) / seconds_since(start);
    if (stopped) break;
    finish_epoch(validate(validation), speed);
    stopped = session_.stop().must_stop(at.step) && at.epoch < options_.epochs;
  }
  if (stopped)
    save();
  else if (averages_)
    averages_->adopt();
  return !stopped;
}

/// False: to be stopped before the epoch is done.
bool Phase::train_epoch(Source& training) {
  Position& at = session_.position();
  const int64_t in_a_step = options_.batch_size * options_.accumulate;
  const int64_t steps = (training.examples() + in_a_step - 1) / in_a_step;
  model_.train();
  if (progress_) progress_->begin(str("epoch ", at.epoch + 1, '/', options_.epochs), steps, at.step_in_epoch);
  training.start(at.epoch, at.step_in_epoch * options_.accumulate);
  bool stop = false;
  while (!stop && at.step_in_epoch < steps) {
    session_.sums().count(train_step(training, at.step_in_epoch * in_a_step), 0);
    ++at.step;
    ++at.step_in_epoch;
    if (session_.sums().unread_steps() >= (ranks_.device().kind == DeviceKind::cuda ? kReadEvery : 1)) read_sums();
    if (session_.stop().wants_checkpoint()) {
      read_sums();
      save();
      if (progress_) progress_->note(str("saved a checkpoint at step ", at.step));
    }
    stop = session_.stop().must_stop(at.step);
  }
  read_sums();
  if (progress_) progress_->end();
  return at.step_in_epoch == steps;
}

/// One step on the examples from `first` of this rank's epoch on; returns how many they are. Each batch weighs by its
/// share of them, so that the gradients of all add up to that of one large batch.
int64_t Phase::train_step(Source& training, int64_t first) {
  const int64_t count = std::min(options_.batch_size * options_.accumulate, training.examples() - first);
  adam_->zero_grad();
  for (int64_t done = 0; done < count;) {
    const auto examples = training.next();
    WEFT_CHECK(examples, "expected ", training.examples(), " pictures in an epoch, got ", first + done);
    done += examples->count;
    const std::shared_ptr<void> own = done < count ? parallel_.no_sync() : nullptr;
    const Tensor loss = cross_entropy(forward(examples->input), examples->labels);
    session_.sums().add(loss, examples->count);
    const double share = static_cast<double>(examples->count) / static_cast<double>(count);
    (share == 1 ? loss : mul(loss, share)).backward();
  }
  adam_->step();
  if (averages_) averages_->update();
  return count;
}

void Phase::read_sums() {
  const support::StepSums::Totals totals = session_.sums().read();
  if (totals.steps == 0) return;
  Position& at = session_.position();
  at.images += totals.images;
  at.loss_sum += totals.loss;
  WEFT_CHECK(std::isfinite(at.loss_sum), "the loss of epoch ", at.epoch + 1, " is not a number at step ", at.step,
             ". Choose a smaller --lr");
  if (progress_) progress_->step({.images = totals.images, .loss = totals.loss / static_cast<double>(totals.images)});
}

double Phase::validate(Source& validation) const {
  const NoGrad no_grad;
  const auto swapped = support::averaged(averages_.get());
  model_.eval();
  int64_t steps = 0, right = 0, count = 0;
  if (progress_)
    progress_->begin("validation", (validation.examples() + options_.batch_size - 1) / options_.batch_size);
  validation.start(0);
  while (auto examples = validation.next()) {
    const Tensor guesses = argmax(forward(examples->input), 1);
    right += static_cast<int64_t>(sum(eq(guesses, examples->labels).to(DType::i64)).item());
    count += examples->count;
    ++steps;
    if (progress_) progress_->step({.images = examples->count * ranks_.size()});
  }
  if (progress_) progress_->drop();  // the accuracy's line follows
  if (parallel_.is_sharded()) {      // the others need this rank's part of the weights for each of their steps
    const int64_t most = ranks_.max(steps, "steps of the validation");
    for (; steps < most; ++steps) forward(validation.stand_in());
  }
  const std::vector<double> sums =
      ranks_.sum({static_cast<double>(right), static_cast<double>(count)}, "right answers");
  return sums[0] / sums[1];
}

void Phase::finish_epoch(double accuracy, double images_per_second) {
  Position& at = session_.position();
  at.result = {
      .accuracy = accuracy,
      .best_accuracy = std::max(at.result.best_accuracy, accuracy),
      .train_loss = at.loss_sum / static_cast<double>(at.images),
      .images_per_second = images_per_second,
      .peak_tensor_bytes = static_cast<double>(kernels::CachingAllocator::of(ranks_.device()).stats().peak_live)};
  ++at.epoch;
  at.step_in_epoch = 0;
  at.images = 0;
  at.loss_sum = 0;
  if (ranks_.is_first()) std::cout << accuracy_line(accuracy, ranks_.device()) << std::endl;
  if (Record* record = session_.record()) {
    const int64_t epoch = at.first_epoch + at.epoch;
    record->metrics.append({.epoch = epoch,
                            .step = at.step,
                            .split = support::Split::train,
                            .loss = at.result.train_loss,
                            .accuracy = accuracy,
                            .lr = how_.lr,
                            .images_per_second = images_per_second});
    record->validated(epoch, 100 * accuracy);
    record->board.scalar("training loss", at.result.train_loss, epoch);
  }
  save();
}

}  // namespace weft::linear_probe
