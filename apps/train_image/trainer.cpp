// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "apps/support/device.h"
#include "apps/support/exit.h"
#include "apps/support/memory.h"
#include "apps/support/resume.h"
#include "apps/train_image/not_finite.h"
#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/compare.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/sum.h"
#include "core/trace.h"
#include "data/transforms/mixup.h"
#include "dist/sync_batch_norm.h"
#include "kernels/allocator.h"
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
      folder_(ranks_.is_first() ? std::make_unique<support::RunFolder>(experiment.options.out) : nullptr),
      optimizer_(experiment.make_optimizer()),
      averages_(support::make_averages(experiment.options.averages, *optimizer_, *experiment.model)),
      schedule_(experiment.make_schedule()),
      nowhere_(ranks_.is_first() ? nullptr : std::fopen("/dev/null", "w"), std::fclose),
      progress_(progress_options(nowhere_.get())),
      sums_(ranks_, signals_),
      stop_(sums_, {.max_steps = experiment.options.max_steps, .usr1_stops = experiment.options.usr1 == "stop"}),
      profile_(ranks_.is_first() ? experiment.options.profile : "", experiment.options.profile_steps) {
  resume();
  make_graph();
  if (!folder_) return;
  const Options& o = experiment_.options;
  folder_->write_config(str("# ", ranks_.size(), ranks_.size() == 1 ? " rank: " : " ranks: ",
                            experiment_.global_batch(), " pictures per step\n", o.toml));
  const bool fresh = position_.step == 0;
  metrics_ = fresh ? std::make_unique<support::Metrics>(folder_->metrics())
                   : std::make_unique<support::Metrics>(folder_->metrics(), position_.step);
  board_ = std::make_unique<support::TensorBoard>(folder_->path(), fresh ? -1 : position_.step);
  if (fresh) {
    board_->hyper_parameters({{"model", o.model},
                              {"lr", o.lr},
                              {"batch_size", static_cast<double>(experiment_.global_batch())},
                              {"optimizer", o.optimizer},
                              {"weight_decay", o.weight_decay},
                              {"precision", o.precision}});
    show_samples();
  }
}

void Trainer::show_samples() {
  if (!support::have_png()) return;
  std::vector<support::Picture> pictures;
  const int64_t count = std::min<int64_t>(32, experiment_.train_set->size());
  for (int64_t i = 0; i < count; ++i) {
    const data::Picture stored = experiment_.train_set->get(i);
    support::Picture picture(static_cast<int>(stored.width), static_cast<int>(stored.height));
    for (int64_t p = 0; p < stored.width * stored.height; ++p)
      for (int64_t c = 0; c < 3; ++c)
        picture.pixels[p * 3 + c] = stored.pixels[p * stored.channels + std::min(c, stored.channels - 1)];
    if (picture.width <= 512) pictures.push_back(std::move(picture));
  }
  if (!pictures.empty()) board_->picture("samples", support::grid(pictures, 8), 0);
}

void Trainer::resume() {
  const std::string path = support::checkpoint_to_resume(experiment_.options.resume, experiment_.options.out, ranks_);
  if (path.empty()) return;
  const support::Checkpoint saved = support::load_checkpoint(path);
  const std::string& model = saved.text("model");
  WEFT_CHECK(model == experiment_.options.model, "checkpoint ", path, " is of model '", model, "', this run trains '",
             experiment_.options.model, "'");
  support::require_same_step(path, saved, {.batch_size = experiment_.options.batch_size}, ranks_);
  experiment_.parallel->load(str("checkpoint ", path, ": model"), saved.part("model"), saved.part("optimizer"),
                             *optimizer_);
  support::load_averages(path, saved, *experiment_.parallel, averages_.get());
  support::load_generator(saved, ranks_);
  position_ = {.epoch = saved.integer("epoch"),
               .step_in_epoch = saved.integer("step_in_epoch"),
               .step = saved.integer("step"),
               .images = saved.integer("images"),
               .loss_sum = saved.number("loss_sum"),
               .correct = saved.number("correct"),
               .best_accuracy = saved.number("best_accuracy"),
               .best_epoch = saved.integer("best_epoch")};
  progress_.note(str("resumed from ", path, " at epoch ", position_.epoch + 1, ", step ", position_.step));
}

void Trainer::save(const std::filesystem::path& path) {
  if (!support::have_checkpoints()) return;
  support::Checkpoint checkpoint;
  checkpoint.parts = {{"model", experiment_.parallel->model_state()},
                      {"optimizer", experiment_.parallel->optimizer_state(*optimizer_)}};
  support::save_averages(checkpoint, *experiment_.parallel, averages_.get());
  if (!folder_) return;
  checkpoint.integers = {{"epoch", position_.epoch},
                         {"step_in_epoch", position_.step_in_epoch},
                         {"step", position_.step},
                         {"images", position_.images},
                         {"best_epoch", position_.best_epoch},
                         {"batch_size", experiment_.global_batch()}};
  support::save_generator(checkpoint, experiment_.device);
  checkpoint.numbers = {
      {"loss_sum", position_.loss_sum}, {"correct", position_.correct}, {"best_accuracy", position_.best_accuracy}};
  checkpoint.texts = {{"model", experiment_.options.model}, {"config", experiment_.options.toml}};
  support::save_checkpoint(path, checkpoint);
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
    const std::filesystem::path folder = experiment_.options.out;
    if (support::have_checkpoints()) save(folder / support::RunFolder::kLastCheckpoint);
    progress_.note(stop_.line("train_image", position_.step, folder));
  }
  note(profile_.finish());
  if (folder_) {
    board_->end(!stopped);
    write_summary(!stopped);
  }
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
      const std::filesystem::path path = std::filesystem::path(e.options.out) / support::RunFolder::kLastCheckpoint;
      save(path);
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
  if (o.graph == "off" || (o.graph == "auto" && (device.kind != DeviceKind::cuda || watched))) return;
  if (device.kind == DeviceKind::cpu)
    throw support::UsageError("--graph on: expected --device cuda or simt, got cpu, which runs each op at once");
  graph_ = std::make_unique<GraphedFunction>(
      device, [this](const std::vector<Tensor>& in) { update(in[0], in[1], in[2]); },
      GraphedFunctionOptions{.may_run_eagerly = o.graph == "auto"});
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
  if (!std::isfinite(position_.loss_sum))
    fail_not_finite(!totals.own_loss_is_finite, images, targets, position_.loss_sum - before);
}

/// All ranks come here together; those whose loss it was say why.
void Trainer::fail_not_finite(bool here, const Tensor& images, const Tensor& targets, double loss) {
  Experiment& e = experiment_;
  progress_.end();
  std::string reason;
  if (here) {
    // The forward of this rank alone: what asks other ranks would wait for them.
    dist::convert_sync_batch_norm(*e.model, nullptr);
    std::function<void()> again = [&] {
      const Autocast low(e.precision);
      cross_entropy((*e.model)(images), targets, {.label_smoothing = e.options.label_smoothing});
    };
    if (e.parallel->is_sharded()) again = nullptr;
    reason = explain_not_finite(e.parallel->parameters(), again);
  }
  const std::vector<std::string> reasons = ranks_.texts(reason, "loss that is not finite");
  std::string where;
  for (size_t rank = reasons.size(); rank-- > 0;)
    if (!reasons[rank].empty()) {
      reason = reasons[rank];
      where = ranks_.size() > 1 ? str(" on rank ", rank) : "";
    }
  fail("loss is not finite (", loss, ")", where, " at epoch ", position_.epoch + 1, ", step ", position_.step, ": ",
       reason, ". The last good checkpoint is kept");
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
                  .waited = totals.waited});
  return totals;
}

void Trainer::finish_epoch() {
  Experiment& e = experiment_;
  const support::ProgressState state = progress_.state();
  const double images = static_cast<double>(position_.images);
  const double train_loss = position_.loss_sum / images, train_accuracy = position_.correct / images;
  // Workers make the next epoch's first batches while this thread validates.
  if (position_.epoch + 1 < e.options.epochs && !must_stop()) e.train_loader->start(position_.epoch + 1);
  {
    const auto swapped = support::averaged(averages_.get());
    last_ = evaluate(e);
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
  if (folder_) write_metrics(train_loss, train_accuracy, state);
  const std::filesystem::path folder = e.options.out;
  save(folder / support::RunFolder::kLastCheckpoint);
  if (best) save(folder / support::RunFolder::kBestCheckpoint);
  progress_.end(
      str("val loss ", std::round(last_.loss * 1e4) / 1e4, " accuracy ", percent(last_.accuracy), best ? " *" : ""));
}

void Trainer::write_metrics(double train_loss, double train_accuracy, const support::ProgressState& state) {
  const Experiment& e = experiment_;
  const double lr = optimizer_->lr();
  metrics_->append({.epoch = position_.epoch,
                    .step = position_.step,
                    .split = support::Split::train,
                    .loss = train_loss,
                    .accuracy = train_accuracy,
                    .lr = lr,
                    .images_per_second = state.images_per_second,
                    .data_wait = state.data_wait});
  metrics_->append({.epoch = position_.epoch,
                    .step = position_.step,
                    .split = support::Split::val,
                    .loss = last_.loss,
                    .accuracy = last_.accuracy,
                    .lr = lr,
                    .images_per_second = last_.images_per_second});
  board_->scalar("loss/train", train_loss, position_.step);
  board_->scalar("loss/val", last_.loss, position_.step);
  board_->scalar("accuracy/train", train_accuracy, position_.step);
  board_->scalar("accuracy/val", last_.accuracy, position_.step);
  board_->scalar("lr", lr, position_.step);
  board_->scalar("images_per_second", state.images_per_second, position_.step);
  if (support::have_png()) board_->picture("confusion", last_.confusion.draw(e.val_set->classes()), position_.step);
}

void Trainer::write_summary(bool finished) {
  const Experiment& e = experiment_;
  constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();  // null in the file
  const double best = position_.best_epoch > 0 ? position_.best_accuracy : kNotKnown;
  folder_->write_summary(
      {{"finished", finished},
       {"model", e.options.model},
       {"data", e.options.data},
       {"device", support::describe(e.device)},
       {"ranks", static_cast<int64_t>(ranks_.size())},
       {"epochs", position_.epoch},
       {"steps", position_.step},
       {"val_accuracy", last_.images > 0 ? last_.accuracy : kNotKnown},
       {"val_loss", last_.images > 0 ? last_.loss : kNotKnown},
       {"best_val_accuracy", best},
       {"best_epoch", position_.best_epoch},
       {"images_per_second", trained_seconds_ > 0 ? static_cast<double>(trained_images_) / trained_seconds_ : 0.0},
       {"peak_memory_bytes", support::peak_memory_bytes()},
       {"peak_tensor_bytes", static_cast<int64_t>(kernels::CachingAllocator::of(e.device).stats().peak_live)}});
}

}  // namespace weft::train_image
