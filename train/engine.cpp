// SPDX-License-Identifier: Apache-2.0
#include "train/engine.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/reduce.h"
#include "core/trace.h"
#include "kernels/runtime/kernel_trace.h"
#include "kernels/runtime/runtime.h"
#include "train/not_finite.h"
#include "train/record/averages.h"
#include "train/record/run_folder.h"
#include "train/record/stopwatch.h"
#include "train/training_main.h"

namespace weft::train {
namespace {

constexpr int64_t kReadEvery = 20;          // steps between two looks at the loss on a GPU
constexpr double kLeastScale = 1.0 / 1024;  // at which gradients of f16 must be finite

}  // namespace

Tensor count_correct(const Tensor& logits, const Tensor& labels) {
  const TraceScope scope("metrics");
  const NoGrad no_grad;
  return sum(eq(argmax(logits, 1), labels).to(DType::f32));
}

DType precision_named(const std::string& word) {
  if (word == "f32" || word == "none") return DType::f32;
  if (word == "bf16" || word == "fp8") return DType::bf16;
  WEFT_CHECK(word == "fp16", "precision: expected f32, none, bf16, fp8 or fp16, got '", word, "'");
  return DType::f16;
}

std::string Task::origin(int64_t /*epoch*/, int64_t /*batch*/, size_t number, const Shape& place) const {
  return str("tensor ", number, " of the batch at ", place);
}

Interruption::Interruption(const dist::World& world, StopOptions options, LossSum sum, std::shared_ptr<Signals> process)
    : own(process ? std::move(process) : std::make_shared<Signals>()),
      signals(*own),
      sums(world, signals, sum),
      stop(sums, options) {}

Engine::Engine(Task& task, const Parts& parts, EngineOptions options, std::shared_ptr<Interruption> interruption)
    : task_(task),
      parts_(parts),
      options_(std::move(options)),
      own_(interruption ? std::move(interruption)
                        : std::make_shared<Interruption>(parts.world, options_.stop, options_.sum)),
      interruption_(*own_),
      progress_(
          {.unit = options_.unit, .quiet = options_.quiet || !parts.world.is_first(), .rank = parts.world.rank()}),
      profile_(parts.world.is_first() ? options_.profile : "", options_.profile_steps) {
  if (options_.precision == DType::bf16 && !parts_.strategy.is_sharded())
    parts_.optimizer.flat()->keep_compute_copy(DType::bf16);
  make_graph();
}

int64_t Engine::steps_per_epoch() const { return (task_.batches() + options_.accumulate - 1) / options_.accumulate; }

bool Engine::is_finished() const {
  return options_.last_step > 0 ? position_.step >= options_.last_step : position_.epoch >= options_.epochs;
}

/// The run's last step is made, its validation is not.
bool Engine::is_last_step() const {
  if (options_.last_step > 0) return position_.step >= options_.last_step;
  return position_.epoch + 1 == options_.epochs && position_.step_in_epoch == steps_per_epoch();
}

bool Engine::must_stop() {
  return interruption_.stop.must_stop(position_.step) && !(options_.validates_after_saving && is_last_step());
}

void Engine::note(const std::string& line) {
  if (!line.empty()) progress_.note(line);
}

RunEnd Engine::run() {
  training_begins();
  bool learns = false;
  for (int group = 0; group < parts_.optimizer.groups(); ++group) learns |= parts_.optimizer.base_lr(group) > 0;
  if (!learns && parts_.world.is_first())
    std::cerr << "warning: the learning rate is 0, so nothing is learned\n" << std::flush;
  bool stopped = !is_finished() && must_stop();
  while (!stopped && !is_finished()) {
    stopped = !train_epoch();
    if (stopped) break;
    finish_epoch();
    stopped = !is_finished() && !options_.validates_after_saving && must_stop();
  }
  if (stopped) task_.save();
  finish_saving();
  if (stopped) {
    if (!options_.program.empty()) note(interruption_.stop.line(options_.program, position_.step, options_.out));
    task_.stopped(interruption_.stop);
  }
  note(profile_.finish());
  note(graphs_line());
  const RunEnd end = stopped ? interruption_.stop.end() : RunEnd::finished;
  task_.ended(end);
  parts_.world.wait_for_all("end of the run");
  training_pauses();  // skipped after an error, whose exit code stays
  return end;
}

RunEnd Engine::run_in(const RunFolder* folder) {
  if (is_finished()) {
    note(str("all ", position_.epoch, " epochs are done; raise --epochs to continue"));
    return RunEnd::finished;
  }
  if (folder) folder->remove_summary();
  return run();
}

/// False: the run is to stop before the epoch's end.
bool Engine::train_epoch() {
  int64_t steps = steps_per_epoch();
  if (options_.last_step > 0) steps = std::min(steps, options_.last_step - position_.step + position_.step_in_epoch);
  parts_.model.train();
  task_.epoch_begins();
  progress_.begin(str("epoch ", position_.epoch + 1, '/', options_.epochs), steps, position_.step_in_epoch);
  task_.start_epoch(position_.epoch, position_.step_in_epoch * options_.accumulate);
  const Position before = position_;
  const Stopwatch watch;
  saving_seconds_ = 0;
  bool stop = false;
  while (!stop && position_.step_in_epoch < steps) {
    profile_.before_step();
    const double waited = task_.waited();
    std::optional<Batch> batch = task_.next();
    WEFT_CHECK(batch, "the data of epoch ", position_.epoch + 1, " end at step ", position_.step_in_epoch, " of ",
               steps);
    const int64_t in_a_step = task_.batch_size() * options_.accumulate;
    const int64_t samples =
        options_.accumulate > 1
            ? std::clamp<int64_t>(task_.samples() - position_.step_in_epoch * in_a_step, 0, in_a_step)
            : batch->samples;
    interruption_.sums.count(samples, waited < 0 ? 0 : task_.waited() - waited);
    step(std::move(*batch));
    step_times_.step();
    note(profile_.after_step());
    save_on_the_way();
    stop = must_stop();
  }
  read();
  epoch_ = {.number = position_.epoch + 1,
            .seconds = watch.seconds() - saving_seconds_,
            .samples = position_.samples - before.samples,
            .steps = position_.step - before.step};
  if (position_.step_in_epoch == steps && !(stop && options_.validates_after_saving)) return true;
  progress_.end();
  return false;
}

int64_t Engine::batches_in_step() const {
  return std::min(options_.accumulate, task_.batches() - position_.step_in_epoch * options_.accumulate);
}

double Engine::mean_samples_in_step() const {
  double mean = 0;
  for (int64_t i = 0; i < batches_in_step(); ++i)
    mean += task_.mean_samples(position_.step_in_epoch * options_.accumulate + i);
  return mean;
}

bool Engine::is_whole_step() const {
  return task_.mean_samples(position_.step_in_epoch * options_.accumulate) == task_.mean_samples(0);
}

void Engine::step(Batch batch) {
  const TraceScope scope("step");
  if (first_step_ < 0) first_step_ = position_.step;
  updates_ = true;
  if (schedule_) parts_.optimizer.set_lr(schedule_->lr(position_.step, parts_.optimizer.base_lr()));
  task_.before_step(batch);
  if (graph_ && ((parts_.world.size() == 1 && options_.graphs == 1) || is_whole_step())) {
    unread_batch_ = batch.tensors;
    (*graph_)(batch.tensors);
    if (!graph_->failure().empty() && !graph_->is_captured()) {
      progress_.note(str("no graph: ", graph_->failure()));
      graph_ = nullptr;
    }
  } else {
    update(std::move(batch.tensors), batch.samples);
  }
  updates_ = false;
  ++position_.step;
  ++position_.step_in_epoch;
  task_.after_step();
  const bool logs = options_.log_interval > 0 && position_.step % options_.log_interval == 0;
  if (!logs && interruption_.sums.unread_steps() < (reads_each_step() ? 1 : kReadEvery)) return;
  read();
  if (logs) task_.log_steps(std::exchange(logged_, {}));
}

Batch Engine::next_in_step(int64_t done) {
  std::optional<Batch> next = task_.next();
  WEFT_CHECK(next, "expected ", batches_in_step(), " batches in step ", position_.step_in_epoch, " of an epoch, got ",
             done);
  return std::move(*next);
}

Tensor Engine::times(const Tensor& loss, double factor) { return factor == 1 ? loss : mul(loss, factor); }

Tensor Engine::scaled(const Tensor& loss) const {
  return parts_.scaler ? loss * Tensor::full({}, parts_.scaler->scale(), DType::f32, loss.device()) : loss;
}

/// A step's work on the device, which a graph repeats. With accumulation it takes the step's other batches itself. Each
/// batch weighs by its share of the samples, so that gradients add up to a single large batch's. The strategy knows a
/// rank's weight among the ranks, or (Strategy::counts_samples) gets it here.
void Engine::update(std::vector<Tensor> batch, int64_t samples) {
  if (dist::Pipeline* const pipeline = parts_.strategy.pipeline())
    return update_in_stages(*pipeline, std::move(batch), samples);
  const int64_t count = batches_in_step(), first = position_.step_in_epoch * options_.accumulate;
  const double mean_samples = mean_samples_in_step();
  const bool by_step = options_.sum == LossSum::per_step;
  parts_.strategy.zero_grad(parts_.optimizer);
  unread_batch_ = std::move(batch);
  for (int64_t done = 0; done < count; ++done) {
    if (done > 0) {
      Batch next = next_in_step(done);
      unread_batch_ = std::move(next.tensors), samples = next.samples;
    }
    const std::shared_ptr<void> own = done + 1 < count ? parts_.strategy.no_sync() : nullptr;
    if (samples == 0) parts_.strategy.stand_in();
    Measured measured = task_.loss(unread_batch_);
    const Tensor mean = measured.loss;
    const double share =
        static_cast<double>(samples) / mean_samples;  // this rank's weight, 1 if all have equal numbers
    const bool whole = !parts_.strategy.counts_samples() || samples == 0;
    measured.loss = times(mean, whole ? share : task_.mean_samples(first + done) / mean_samples);
    {
      const TraceScope scope("backward");
      scaled(measured.loss).backward();
    }
    keep(last_loss_, mean.detach());
    counts_correct_ = measured.correct.defined();
    interruption_.sums.add(by_step ? times(last_loss_, share) : mean, samples,
                           samples > 0 ? measured.correct : Tensor());
  }
  const TraceScope scope("optimizer");
  apply_gradients();
}

void Engine::apply_gradients() {
  parts_.strategy.wait_for_gradients();
  if (reads_each_step()) {
    if (!parts_.scaler) interruption_.sums.count_gradient(gradient_is_finite(*parts_.optimizer.flat()));
    read();
  }
  task_.before_update();
  if (parts_.scaler) {
    const double scale = parts_.scaler->scale();
    if (!parts_.scaler->update(std::isfinite(parts_.strategy.grad_norm().item()))) {
      WEFT_CHECK(scale > kLeastScale, "gradient is not finite at step ", position_.step + 1,
                 ", even with a loss scale of ", scale, ": the gradient overflows in f16. Use bf16, or lower the rate");
      return;
    }
    const NoGrad no_grad;
    parts_.optimizer.flat()->gradient().mul_(1 / scale);
  }
  if (options_.clip_norm > 0) keep(gradient_norm_, clip_grad_norm(parts_.strategy.parameters(), options_.clip_norm));
  parts_.strategy.step(parts_.optimizer);
  if (parts_.averages) parts_.averages->update();
}

void Engine::keep(Tensor& last, const Tensor& value) const {
  if (!graph_ || !last.defined()) {
    last = value;
    return;
  }
  const NoGrad no_grad;
  last.copy_(value);
}

Tensor Engine::gradient_norm() {
  if (options_.clip_norm > 0) return gradient_norm_;
  return parts_.optimizer.flat()->whole_norm(optim::trainable(parts_.strategy.parameters()));
}

Tensor Engine::forward(const Tensor& x) {
  const TraceScope scope("forward");
  const Autocast low(options_.precision);
  return alone_ ? parts_.model(x) : parts_.strategy.forward(x);
}

double Engine::weight_of(const StepSums::Totals& totals) const {
  return static_cast<double>(options_.sum == LossSum::per_step ? totals.steps * data_ranks() : totals.samples);
}

StepSums::Totals Engine::read() {
  StepSums::Totals totals = interruption_.sums.read();
  if (totals.steps == 0) return totals;
  // The ranks of a row have counted the same samples.
  const int row = parts_.strategy.row_size();
  totals.samples /= row, totals.loss /= row, totals.correct /= row;
  if (!std::isfinite(totals.loss) || !totals.gradients_are_finite) fail_not_finite(totals);
  unread_batch_.clear();
  last_read_ = totals;
  position_.loss_sum += totals.loss;
  position_.own_loss_sum += totals.own_loss;
  position_.correct += totals.correct;
  position_.samples += totals.samples;
  logged_.steps += totals.steps;
  logged_.samples += totals.samples;
  logged_.own_samples += totals.own_samples;
  logged_.loss += totals.loss;
  logged_.own_loss += totals.own_loss;
  logged_.correct += totals.correct;
  logged_.own_correct += totals.own_correct;
  progress_.step({.images = totals.samples,
                  .loss = totals.loss / weight_of(totals),
                  .correct = counts_correct_ ? totals.correct : -1,
                  .waited = task_.waited() < 0 ? -1 : totals.waited,
                  .steps = totals.steps});
  return totals;
}

void Engine::save_on_the_way() {
  const bool asked = interruption_.stop.wants_checkpoint();
  const bool due = options_.save_interval > 0 && position_.step % options_.save_interval == 0;
  const bool last = options_.validates_after_saving && is_last_step();
  if (!asked && !due && !last) return;
  read();
  const Stopwatch watch;
  const std::string saved = task_.save();
  if (asked && !saved.empty()) progress_.note(str("saved ", saved, " at step ", position_.step));
  saving_seconds_ += watch.seconds();
}

void Engine::finish_epoch() {
  const double steps = static_cast<double>(position_.step_in_epoch), samples = static_cast<double>(position_.samples);
  const bool by_step = options_.sum == LossSum::per_step;
  epoch_.loss = by_step
                    ? parts_.world.sum({position_.own_loss_sum / steps}, "loss of the epoch")[0] / parts_.world.size()
                    : position_.loss_sum / samples;
  epoch_.accuracy = position_.correct / samples;
  epoch_.lr = parts_.optimizer.lr(0);
  epoch_.pace = progress_.state();
  // Workers make the next epoch's first batches while this thread validates.
  if (position_.epoch + 1 < options_.epochs && !must_stop()) task_.start_epoch(position_.epoch + 1, 0);
  if (options_.line_before_validation)
    progress_.end();
  else
    progress_.make_way();
  Validation validation;
  {
    const auto swapped = averaged(parts_.averages);
    validation = task_.validate(epoch_);
  }
  const double best_score = position_.best_score;
  const int64_t best_epoch = position_.best_epoch;
  position_ = {
      .epoch = position_.epoch + 1, .step = position_.step, .best_score = best_score, .best_epoch = best_epoch};
  const bool best = validation.score > best_score || (best_epoch < 0 && !std::isnan(validation.score));
  if (best) position_.best_score = validation.score, position_.best_epoch = position_.epoch;
  task_.epoch_done(epoch_, validation);
  if (best) task_.save_best();  // first: the last checkpoint names the best epoch, whose file must be there
  if (options_.saves_epochs) task_.save();
  task_.epoch_saved(epoch_, validation);
  if (!options_.line_before_validation) progress_.end(validation.text + (best ? " *" : ""));
}

void Engine::make_graph() {
  const Device device = parts_.world.device();
  const bool in_stages = parts_.strategy.pipeline() != nullptr;
  if (parts_.strategy.is_sharded() || parts_.scaler || in_stages) {
    if (options_.graph == "on")
      throw UsageError(
          parts_.scaler ? "--graph on: expected f32 or bf16: the loss scale of f16 is decided step by step"
          : in_stages   ? "--graph on: expected a model in one stage, got a pipeline, whose stages wait for each other"
                        : "--graph on: expected --parallel none or ddp, got fsdp, whose weights come and go");
    return;
  }
  const kernels::KernelChecks checks = kernels::kernel_checks();
  const bool watched = checks.synchronize || checks.not_finite || !options_.profile.empty();
  const bool suits =
      device.kind == DeviceKind::cuda && !watched && parts_.world.size() == 1 && options_.accumulate == 1;
  if (options_.graph == "off" || (options_.graph == "auto" && !suits)) return;
  if (options_.accumulate > 1) throw UsageError("--graph on: expected one batch per step, got --accumulate");
  if (options_.graphs > 1 && parts_.world.size() > 1)
    throw UsageError(
        str("--graph on: expected one rank, got ", parts_.world.size(), ", whose batches differ in shape"));
  if (device.kind == DeviceKind::cpu)
    throw UsageError("--graph on: expected --device cuda, got cpu, which runs each op at once");
  size_t free = 0, total = 0;
  kernels::runtime(device.kind).memory_info(device.index, free, total);
  graph_ = std::make_unique<GraphedFunction>(
      device, [this](const std::vector<Tensor>& in) { update(in, in.front().size(0)); },
      GraphedFunctionOptions{.may_run_eagerly = options_.graph == "auto",
                             .most = options_.graphs,
                             .most_bytes = total / 4,
                             .all_agree = parts_.world.all_agree()});
}

std::string Engine::graphs_line() const {
  if (!graph_ || options_.graphs == 1) return "";
  const std::string& failure = graph_->failure();
  return str("graphs: ", graph_->graphs(), " of at most ", options_.graphs, " shapes, which replayed ",
             graph_->replays(), " of ", first_step_ < 0 ? 0 : position_.step - first_step_, " steps",
             failure.empty() ? "" : str("; no more: ", failure));
}

}  // namespace weft::train
