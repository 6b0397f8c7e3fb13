// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "apps/support/checkpoint.h"
#include "apps/support/exit.h"
#include "apps/train_image/not_finite.h"
#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/compare.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/sum.h"
#include "core/trace.h"
#include "data/transforms/mixup.h"
#include "kernels/kernel_trace.h"

namespace weft::train_image {
namespace {

constexpr int64_t kReadEvery = 20;  // steps between two looks at the loss on a GPU

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f%%", 100 * share);
  return text;
}

/// Lines on `out`; null: on stderr.
support::ProgressOptions progress_options(std::FILE* out) {
  support::ProgressOptions options;
  options.out = out;
  return options;
}

}  // namespace

Trainer::Trainer(Experiment& experiment)
    : experiment_(experiment),
      ranks_(experiment.ranks),
      folder_(support::open_run_folder(experiment.options.out, ranks_)),
      optimizer_(experiment.make_optimizer()),
      averages_(support::make_averages(experiment.options.averages, *optimizer_, *experiment.model)),
      schedule_(experiment.make_schedule()),
      state_{experiment, *optimizer_, averages_.get(), position_},
      nowhere_(ranks_.is_first() ? nullptr : std::fopen("/dev/null", "w"), std::fclose),
      progress_(progress_options(nowhere_.get())),
      validation_(progress_options(nowhere_.get())),
      sums_(ranks_, signals_),
      stop_(sums_, {.max_steps = experiment.options.max_steps, .usr1_stops = experiment.options.usr1 == "stop"}),
      profile_(ranks_.is_first() ? experiment.options.profile : "", experiment.options.profile_steps) {
  support::prepare_checkpoints();
  if (const std::string path = state_.resume(); !path.empty())
    note(str("resumed from ", path, " at epoch ", position_.epoch + 1, ", step ", position_.step));
  make_graph();
  if (folder_) record_ = std::make_unique<Record>(experiment, *folder_, position_.step);
}

std::filesystem::path Trainer::file(const char* name) const {
  return std::filesystem::path(experiment_.options.out) / name;
}

bool Trainer::must_stop() { return stop_.must_stop(position_.step); }

support::RunEnd Trainer::run() {
  if (position_.epoch >= experiment_.options.epochs) {  // a finished run, resumed: its files stay as they are
    progress_.note(str("all ", position_.epoch, " epochs are done; raise --epochs to go on"));
    return support::RunEnd::finished;
  }
  bool stopped = must_stop();
  while (!stopped && position_.epoch < experiment_.options.epochs) {
    stopped = !train_epoch();
    if (!stopped) finish_epoch();
    stopped = stopped || (must_stop() && position_.epoch < experiment_.options.epochs);
  }
  if (stopped) {
    state_.save(file(support::RunFolder::kLastCheckpoint));
    progress_.note(stop_.line("train_image", position_.step, experiment_.options.out));
  }
  note(profile_.finish());
  if (record_)
    record_->end(!stopped, position_, last_,
                 trained_seconds_ > 0 ? static_cast<double>(trained_images_) / trained_seconds_ : 0);
  // A launcher may end the others when one rank ends with another code than 0: not before rank 0's files are whole.
  ranks_.wait_for_all("end of the run");
  return stopped ? stop_.end() : support::RunEnd::finished;
}

StateDict Trainer::weights() {
  const auto swapped = support::averaged(averages_.get());
  StateDict state = experiment_.parallel->model_state();
  for (NamedTensor& entry : state.tensors) entry.tensor = entry.tensor.clone();  // the averages leave again
  return state;
}

void Trainer::note(const std::string& line) {
  if (!line.empty()) progress_.note(line);
}

bool Trainer::train_epoch() {
  Experiment& e = experiment_;
  e.model->train();
  progress_.begin(str("epoch ", position_.epoch + 1, "/", e.options.epochs), e.steps_per_epoch(),
                  position_.step_in_epoch);
  e.train_loader->start(position_.epoch, position_.step_in_epoch);
  e.train_loader->reset_statistics();
  const double start = seconds_now();
  const int64_t images_before = position_.images;
  bool whole = true;
  double waited = 0;
  while (true) {
    profile_.before_step();
    const auto batch = e.train_loader->next();
    if (!batch) break;
    const double now_waited = e.train_loader->statistics().waited_seconds;
    sums_.count(batch->count, now_waited - waited);
    waited = now_waited;
    train_step(*batch);
    note(profile_.after_step());
    if (stop_.wants_checkpoint() && support::have_checkpoints()) {
      read_sums();
      const std::filesystem::path path = file(support::RunFolder::kLastCheckpoint);
      state_.save(path);
      progress_.note(str("saved ", path.string(), " at step ", position_.step));
    }
    if (must_stop()) {
      whole = position_.step_in_epoch == e.steps_per_epoch();
      break;
    }
  }
  read_sums();
  trained_seconds_ += seconds_now() - start;
  trained_images_ += position_.images - images_before;
  if (!whole) progress_.end();
  return whole;
}

void Trainer::make_graph() {
  const Options& o = experiment_.options;
  const Device device = experiment_.device;
  if (experiment_.parallel->is_sharded()) {
    if (o.graph != "on") return;
    throw support::UsageError("--graph on: expected --parallel none or ddp, got fsdp, whose weights come and go");
  }
  const kernels::KernelChecks checks = kernels::kernel_checks();
  const bool watched = checks.synchronize || checks.not_finite || !o.profile.empty();
  const bool suits = device.kind == DeviceKind::cuda && !watched && ranks_.size() == 1;
  if (o.graph == "off" || (o.graph == "auto" && !suits)) return;
  if (device.kind == DeviceKind::cpu)
    throw support::UsageError("--graph on: expected --device cuda or simt, got cpu, which runs each op at once");
  graph_ = std::make_unique<GraphedFunction>(
      device, [this](const std::vector<Tensor>& in) { update(in[0], in[1], in[2]); },
      GraphedFunctionOptions{.may_run_eagerly = o.graph == "auto", .all_agree = ranks_.all_agree()});
}

Tensor Trainer::forward(const Tensor& images) {
  const TraceScope scope("forward");
  const Autocast low(experiment_.precision);
  return experiment_.parallel->forward(images);
}

/// What a step does on the device: the part that a graph repeats.
void Trainer::update(const Tensor& images, const Tensor& targets, const Tensor& labels) {
  const Options& o = experiment_.options;
  const Tensor logits = forward(images);
  const Tensor loss = cross_entropy(logits, targets, {.label_smoothing = o.label_smoothing});
  optimizer_->zero_grad();
  {
    const TraceScope scope("backward");
    loss.backward();
  }
  {
    const TraceScope scope("optimizer");
    if (o.clip_norm > 0) experiment_.parallel->clip_grad_norm(o.clip_norm);
    optimizer_->step();
    if (averages_) averages_->update();
  }
  const TraceScope scope("metrics");
  const NoGrad no_grad;
  sums_.add(loss, images.size(0), sum(eq(argmax(logits, 1), labels).to(DType::f32)));
}

void Trainer::train_step(const data::Batch& batch) {
  const TraceScope scope("step");
  Experiment& e = experiment_;
  const Options& o = e.options;
  optimizer_->set_lr(schedule_->lr(position_.step, o.lr));

  Tensor images = batch.images, targets = batch.labels;
  data::Draw draw(static_cast<uint64_t>(o.seed) ^ 0x313CULL, static_cast<uint64_t>(position_.step));
  const bool cut = o.cutmix > 0 && (o.mixup <= 0 || draw.coin());
  if (o.mixup > 0 || o.cutmix > 0) {
    const data::MixedBatch mixed = cut ? data::cutmix(images, targets, e.classes, o.cutmix, draw)
                                       : data::mixup(images, targets, e.classes, o.mixup, draw);
    images = mixed.images;
    targets = mixed.targets;
  }
  if (graph_) {
    (*graph_)({images, targets, batch.labels});
    if (!graph_->failure().empty()) {
      progress_.note(str("no graph: ", graph_->failure()));
      graph_ = nullptr;
    }
  } else {
    update(images, targets, batch.labels);
  }

  ++position_.step;
  ++position_.step_in_epoch;
  if (sums_.unread_steps() < (e.device.kind == DeviceKind::cuda ? kReadEvery : 1)) return;
  const double before = position_.loss_sum;
  const support::StepSums::Totals totals = read_sums();
  if (!std::isfinite(position_.loss_sum)) {
    progress_.end();
    fail_not_finite(e, position_, {images, targets, position_.loss_sum - before, !totals.own_loss_is_finite});
  }
}

support::StepSums::Totals Trainer::read_sums() {
  const support::StepSums::Totals totals = sums_.read();
  if (totals.steps == 0) return totals;
  position_.loss_sum += totals.loss;
  position_.correct += totals.correct;
  position_.images += totals.images;
  progress_.step({.images = totals.images,
                  .loss = totals.loss / static_cast<double>(totals.images),
                  .correct = totals.correct,
                  .waited = totals.waited,
                  .steps = totals.steps});
  return totals;
}

void Trainer::finish_epoch() {
  Experiment& e = experiment_;
  const support::ProgressState state = progress_.state();
  const double images = static_cast<double>(position_.images);
  const Training training{position_.loss_sum / images, position_.correct / images, optimizer_->lr(), state};
  // Workers make the next epoch's first batches while this thread validates.
  if (position_.epoch + 1 < e.options.epochs && !must_stop()) e.train_loader->start(position_.epoch + 1);
  {
    const auto swapped = support::averaged(averages_.get());
    progress_.make_way();
    last_ = evaluate(e, validation_);
  }

  ++position_.epoch;
  position_.step_in_epoch = 0;
  position_.images = 0;
  position_.loss_sum = position_.correct = 0;
  const bool best = last_.accuracy > position_.best_accuracy;
  if (best) {
    position_.best_accuracy = last_.accuracy;
    position_.best_epoch = position_.epoch;
  }
  if (record_) record_->epoch(position_, training, last_);
  state_.save(file(support::RunFolder::kLastCheckpoint));
  if (best) state_.save(file(support::RunFolder::kBestCheckpoint));
  progress_.end(
      str("val loss ", std::round(last_.loss * 1e4) / 1e4, " accuracy ", percent(last_.accuracy), best ? " *" : ""));
}

}  // namespace weft::train_image
