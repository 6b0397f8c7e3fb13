// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/trainer.h"

#include <cmath>

#include "core/ops/layers/losses.h"
#include "data/transforms/mixup.h"
#include "io/checkpoint.h"
#include "train/record/class_names.h"
#include "train/resume.h"

namespace weft::train_image {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f%%", 100 * share);
  return text;
}

}  // namespace

Trainer::Trainer(Experiment& e)
    : TypedTask(e.train_loader),
      experiment_(e),
      folder_(train::open_run_folder(e.options.out, e.ranks)),
      optimizer_(e.make_optimizer()),
      averages_(train::make_averages(e.options.averages, *optimizer_, *e.model)),
      schedule_(e.make_schedule()),
      engine_(*this, {e.ranks, *e.model, *e.strategy, *optimizer_, averages_.get()}, train::engine_options(e.options)),
      validation_({.quiet = !e.ranks.is_first()}) {
  resume();
  if (folder_) record_ = std::make_unique<Record>(e, *folder_, engine_.position().step);
}

void Trainer::resume() {
  Experiment& e = experiment_;
  const std::string path = train::checkpoint_to_resume(e.options.resume, e.options.out, e.ranks);
  if (!path.empty()) {
    const Checkpoint saved = engine_.read(path);
    const std::string& model = saved.text("model");
    WEFT_CHECK(model == e.options.model, "checkpoint ", path, " is of model '", model, "', this run trains '",
               e.options.model, "'");
    check_settings(path, saved);
    train::require_same_classes(path, saved.texts, e.val_set->classes());
    engine_.take(path, saved);
  }
  // Not before: --overwrite removes nothing for a run that cannot begin.
  folder_ = train::open_run_folder(e.options.out, e.ranks, train::new_run(e.options));
  if (path.empty()) return;
  train::Position& at = engine_.position();
  engine_.note(str("resumed from ", path, " at epoch ", at.epoch + 1, ", step ", at.step));
  const bool has_best = train::has_best_of(folder_.get(), at.best_epoch, e.ranks);
  if (has_best || at.best_epoch < 0) return;
  engine_.note(str("no checkpoint_best of epoch ", at.best_epoch, " in ", e.options.out,
                   ": the best of the epochs from here on is kept"));
  at.best_epoch = train::Position().best_epoch, at.best_score = train::Position().best_score;
}

/// Refuses changes that a resumed run may not make, and notes the others.
void Trainer::check_settings(const std::string& path, const Checkpoint& saved) {
  // The model's start is over, places of files change nothing, and the rest is checked elsewhere.
  const auto changes = train::changed_settings(saved, experiment_.options,
                                               "export eval-only summary transform-on model weights-strict "
                                               "weights-prefix weights-key");
  WEFT_CHECK(!changes.contains("optimizer"), "checkpoint ", path, " holds the state of another optimizer (",
             changes.at("optimizer"), "). To change it, start a new run with --weights ", path);
  WEFT_CHECK(!changes.contains("seed") || saved.integer("step_in_epoch") == 0, "checkpoint ", path,
             " is of the midst of an epoch, whose order of images depends on --seed (", changes.at("seed"), ")");
  engine_.note(train::note_of(changes));
}

std::string Trainer::write(const char* name) {
  auto texts = experiment_.texts();
  texts.insert({{"model", experiment_.options.model}, {"config", experiment_.options.toml}});
  const bool last = std::string_view(name) == train::RunFolder::kLastCheckpoint;
  engine_.save(folder_.get(), name, texts, last ? static_cast<int>(experiment_.options.keep) : 1);
  return (std::filesystem::path(experiment_.options.out) / name).string();
}

void Trainer::ended(train::RunEnd end) {
  if (record_)
    record_->end(end == train::RunEnd::finished, engine_.position(), last_,
                 trained_seconds_ > 0 ? static_cast<double>(trained_images_) / trained_seconds_ : 0);
}

void Trainer::stopped(train::StopRule& rule) {
  engine_.note(rule.line("train_image", engine_.position().step, experiment_.options.out));
}

StateDict Trainer::weights() {
  const auto swapped = train::averaged(averages_.get());
  StateDict state = experiment_.strategy->model_state();
  for (NamedTensor& entry : state.tensors) entry.tensor = entry.tensor.clone();  // the averages leave again
  return state;
}

/// Mixes images and their targets.
void Trainer::before_step(Labelled& batch) {
  const Options& o = experiment_.options;
  const int64_t step = engine_.position().step;
  optimizer_->set_lr(schedule_->lr(step, o.lr));
  batch.targets = batch.labels;
  if (o.mixup <= 0 && o.cutmix <= 0) return;
  data::Draw draw(static_cast<uint64_t>(o.seed) ^ 0x313CULL, static_cast<uint64_t>(step));
  const bool cut = o.cutmix > 0 && (o.mixup <= 0 || draw.coin());
  const data::MixedBatch mixed = cut ? data::cutmix(batch.images, batch.labels, experiment_.classes, o.cutmix, draw)
                                     : data::mixup(batch.images, batch.labels, experiment_.classes, o.mixup, draw);
  batch.images = mixed.images;
  batch.targets = mixed.targets;
}

train::Measured Trainer::loss(const Labelled& batch) {
  const Tensor logits = engine_.forward(batch.images);
  return {cross_entropy(logits, batch.targets, {.label_smoothing = experiment_.options.label_smoothing}),
          train::count_correct(logits, batch.labels)};
}

void Trainer::log_steps(const train::StepSums::Totals& totals) {
  const double gradient_norm = engine_.gradient_norm().item();
  if (record_) record_->steps(engine_.position(), totals, optimizer_->lr(0), gradient_norm);
}

train::Validation Trainer::validate(const train::Epoch&) {
  last_ = evaluate(experiment_, validation_);
  return {last_.accuracy, str("val loss ", std::round(last_.loss * 1e4) / 1e4, " accuracy ", percent(last_.accuracy))};
}

void Trainer::epoch_done(const train::Epoch& epoch, const train::Validation&) {
  trained_seconds_ += epoch.seconds;
  trained_images_ += epoch.samples;
  if (record_) record_->epoch(engine_.position(), epoch, last_);
}

}  // namespace weft::train_image
