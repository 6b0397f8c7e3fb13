// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>

#include "apps/train_image/experiment.h"
#include "core/choose_device.h"
#include "core/ops/layers/losses.h"
#include "data/transforms/mixup.h"
#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "train/loader_task.h"
#include "train/memory.h"
#include "train/record/class_names.h"
#include "train/record/metrics.h"
#include "train/record/run_folder.h"
#include "train/record/tensorboard.h"
#include "train/resume.h"
#include "train/training_main.h"

namespace weft::train_image {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f%%", 100 * share);
  return text;
}

/// A batch as the model learns from it.
struct Labelled {
  Tensor images, labels;
  Tensor targets;  ///< the labels, or mixtures of them [count, classes]
  void fields(auto& v) { v("images", images), v("labels", labels), v("targets", targets); }
};

/// Trains an experiment's model and keeps its run folder, which rank 0 alone writes: checkpoints, config.toml,
/// metrics.jsonl, TensorBoard files, summary.json.
class Trainer final : public train::TypedTask<Labelled> {
 public:
  explicit Trainer(Experiment& e)
      : TypedTask(e.train_loader),
        experiment_(e),
        folder_(train::open_run_folder(e.options.out, e.ranks)),
        optimizer_(e.make_optimizer()),
        averages_(train::make_averages(e.options.averages, *optimizer_, *e.model)),
        engine_(*this, {e.ranks, *e.model, *e.strategy, *optimizer_, averages_.get()},
                train::engine_options(e.options)),
        validation_({.quiet = !e.ranks.is_first()}) {
    engine_.follow(e.make_schedule());
    resume();
    if (folder_) begin_record();
  }

  /// Until the last epoch, --max-steps, or a signal. All ranks stop after the same step.
  train::RunEnd run() { return engine_.run_in(folder_.get()); }
  /// The weights of a finished run, by their averages where those are kept: whole on rank 0. All ranks call it.
  StateDict weights() {
    const auto swapped = train::averaged(averages_.get());
    StateDict state = experiment_.strategy->model_state();
    for (NamedTensor& entry : state.tensors) entry.tensor = entry.tensor.clone();  // the averages leave again
    return state;
  }

 private:
  double waited() const override { return loader().statistics().waited_seconds; }

  /// Mixes images and their targets.
  void before_step(Labelled& batch) override {
    const Options& o = experiment_.options;
    const int64_t step = engine_.position().step;
    batch.targets = batch.labels;
    if (o.mixup <= 0 && o.cutmix <= 0) return;
    data::Draw draw(static_cast<uint64_t>(o.seed) ^ 0x313CULL, static_cast<uint64_t>(step));
    const bool cut = o.cutmix > 0 && (o.mixup <= 0 || draw.coin());
    const data::MixedBatch mixed = cut ? data::cutmix(batch.images, batch.labels, experiment_.classes, o.cutmix, draw)
                                       : data::mixup(batch.images, batch.labels, experiment_.classes, o.mixup, draw);
    batch.images = mixed.images;
    batch.targets = mixed.targets;
  }

  train::Measured loss(const Labelled& batch) override {
    const Tensor logits = engine_.forward(batch.images);
    return {cross_entropy(logits, batch.targets, {.label_smoothing = experiment_.options.label_smoothing}),
            train::count_correct(logits, batch.labels)};
  }

  void log_steps(const train::StepSums::Totals& totals) override {
    const double gradient_norm = engine_.gradient_norm().item();
    if (!folder_) return;
    const train::Position& at = engine_.position();
    const double samples = static_cast<double>(totals.samples);
    metrics_->append({.epoch = at.epoch + 1,
                      .step = at.step,
                      .split = train::Split::steps,
                      .loss = totals.loss / samples,
                      .accuracy = totals.correct / samples,
                      .lr = optimizer_->lr(0),
                      .gradient_norm = gradient_norm});
    board_->scalar("loss/steps", totals.loss / samples, at.step);
    board_->scalar("gradient_norm", gradient_norm, at.step);
  }

  train::Validation validate(const train::Epoch&) override {
    last_ = evaluate(experiment_, validation_);
    return {last_.accuracy,
            str("val loss ", std::round(last_.loss * 1e4) / 1e4, " accuracy ", percent(last_.accuracy))};
  }

  void epoch_done(const train::Epoch& epoch, const train::Validation&) override {
    trained_seconds_ += epoch.seconds;
    trained_images_ += epoch.samples;
    if (!folder_) return;
    const train::Position& at = engine_.position();
    const int64_t peak = train::peak_tensor_bytes(experiment_.device);
    metrics_->append({.epoch = at.epoch,
                      .step = at.step,
                      .split = train::Split::train,
                      .loss = epoch.loss,
                      .accuracy = epoch.accuracy,
                      .lr = epoch.lr,
                      .images_per_second = epoch.pace.images_per_second,
                      .data_wait = std::max(epoch.pace.data_wait, 0.0),
                      .peak_tensor_bytes = peak});
    metrics_->append({.epoch = at.epoch,
                      .step = at.step,
                      .split = train::Split::val,
                      .loss = last_.loss,
                      .accuracy = last_.accuracy,
                      .lr = epoch.lr,
                      .images_per_second = last_.images_per_second});
    board_->scalar("loss/train", epoch.loss, at.step);
    board_->scalar("loss/val", last_.loss, at.step);
    board_->scalar("accuracy/train", epoch.accuracy, at.step);
    board_->scalar("accuracy/val", last_.accuracy, at.step);
    board_->scalar("lr", epoch.lr, at.step);
    board_->scalar("images_per_second", epoch.pace.images_per_second, at.step);
    board_->scalar("peak_tensor_bytes", static_cast<double>(peak), at.step);
    if (train::have_png() && last_.confusion)
      board_->image("confusion", last_.confusion->draw(experiment_.val_set->classes()), at.step);
  }

  std::string save() override { return write(train::RunFolder::kLastCheckpoint, experiment_.options.keep); }
  void save_best() override { write(train::RunFolder::kBestCheckpoint, 1); }

  void ended(train::RunEnd end) override {
    if (!folder_) return;
    const Experiment& e = experiment_;
    const train::Position& at = engine_.position();
    const bool finished = end == train::RunEnd::finished;
    constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();  // null in the file
    board_->end(finished);
    folder_->write_summary(
        {{"finished", finished},
         {"model", e.options.model},
         {"data", e.options.data},
         {"device", weft::describe(e.device)},
         {"ranks", static_cast<int64_t>(e.ranks.size())},
         {"epochs", at.epoch},
         {"steps", at.step},
         {"val_accuracy", last_.images > 0 ? last_.accuracy : kNotKnown},
         {"val_loss", last_.images > 0 ? last_.loss : kNotKnown},
         {"best_val_accuracy", at.best_epoch > 0 ? at.best_score : kNotKnown},
         {"best_epoch", at.best_epoch},
         {"images_per_second", trained_seconds_ > 0 ? static_cast<double>(trained_images_) / trained_seconds_ : 0},
         {"peak_memory_bytes", train::peak_memory_bytes()},
         {"peak_tensor_bytes", train::peak_tensor_bytes(e.device)}});
  }

  std::string write(const char* name, int64_t keep) {
    Checkpoint notes;
    notes.texts = experiment_.texts();
    notes.texts.insert({{"model", experiment_.options.model}, {"config", experiment_.options.toml}});
    engine_.save(folder_.get(), name, std::move(notes), static_cast<int>(keep));
    return (std::filesystem::path(experiment_.options.out) / name).string();
  }

  void resume() {
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
  void check_settings(const std::string& path, const Checkpoint& saved) {
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

  /// A run that goes on drops lines of later steps; at step 0, too: the run before died ahead of its first checkpoint.
  void begin_record() {
    const Experiment& e = experiment_;
    const Options& o = e.options;
    const int64_t step = engine_.position().step, kept = o.resume.empty() ? -1 : step;
    metrics_.emplace(folder_->metrics(), kept);
    board_.emplace(folder_->path(), kept);
    const int ranks = e.ranks.size();
    folder_->write_config(
        str("# ", ranks, ranks == 1 ? " rank: " : " ranks: ", e.global_batch(), " images per step\n", o.toml));
    train::write_class_names(folder_->path(), e.val_set->classes());
    if (step > 0) return;
    board_->hyper_parameters({{"model", o.model},
                              {"lr", o.lr},
                              {"batch_size", static_cast<double>(e.global_batch())},
                              {"optimizer", o.optimizer},
                              {"weight_decay", o.weight_decay},
                              {"precision", o.precision}});
    show_samples();
  }

  void show_samples() {
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
    if (!samples.empty()) board_->image("samples", train::grid(samples, 8), 0);
  }

  Experiment& experiment_;
  std::unique_ptr<train::RunFolder> folder_;  // on rank 0, as all output
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Ema> averages_;
  train::Engine engine_;
  train::Progress validation_;
  std::optional<train::Metrics> metrics_;  // rank 0 has it, and the next
  std::optional<train::TensorBoard> board_;
  Evaluation last_;
  double trained_seconds_ = 0;
  int64_t trained_images_ = 0;
};

void describe(Experiment& e) {
  if (!e.ranks.is_first()) return;
  if (e.ranks.size() > 1)
    std::cout << "ranks   " << e.ranks.describe() << ", " << e.strategy->describe() << "; " << e.options.batch_size
              << " images each per step, " << e.global_batch() << " together\n";
  std::cout << "device  " << weft::describe(e.device) << '\n';
  if (e.train_set) std::cout << "train   " << e.train_set->describe() << '\n';
  std::cout << "val     " << e.val_set->describe() << '\n';
  if (!e.class_note.empty()) std::cout << "classes " << e.class_note << '\n';
  if (e.options.eval_only) std::cout << "pixels  normalised as those of " << e.pixels.origin << '\n';
  std::cout << "model   " << e.options.model << ", " << nn::parameter_count(*e.model) << " parameters, input "
            << e.height << 'x' << e.width << 'x' << e.channels << ", " << e.options.precision << '\n';
  std::cout << e.summary;
  std::cout.flush();
  if (e.classes == 1) std::cerr << "warning: the data has one class alone, so each guess is right\n" << std::flush;
  if (e.options.warmup >= static_cast<double>(e.options.epochs) && !e.options.eval_only)
    std::cerr << str("warning: --warmup ", e.options.warmup, " is not shorter than the run of ", e.options.epochs,
                     " epochs: it is cut to end with the last step\n")
              << std::flush;
}

std::string plan(const Experiment& e) {
  const Options& o = e.options;
  if (o.eval_only) return str("dry run: would evaluate ", e.val_set->size(), " images");
  return str("dry run: would train ", o.epochs, " epochs of ", e.steps_per_epoch(), " steps, ", e.global_batch(),
             " images each, ", o.optimizer, " at ", o.lr, ", schedule ", o.schedule, ", and write ", o.out);
}

/// Errors: --export could not be written at the end, hours later. The run makes its own folder, if it trains.
void check_export(const Options& o) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(o.export_file).parent_path();
  std::error_code ignored;
  const auto whole = [&](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(path, ignored) / "", ignored);
  };
  const bool is_run = !o.eval_only && !folder.empty() && whole(folder) == whole(o.out);
  WEFT_CHECK(!fs::is_directory(o.export_file, ignored), "--export: expected a file, got the folder ", o.export_file);
  WEFT_CHECK(folder.empty() || is_run || fs::is_directory(folder, ignored), "--export ", o.export_file,
             ": expected an existing folder, got none at ", folder.string());
}

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  const dist::World ranks = train::join_ranks(options);
  options.export_file = ranks.first_says(options.export_file, "--export");  // all ranks gather for the one that writes
  if (ranks.is_first()) check_export(options);
  Experiment experiment(options, ranks);
  describe(experiment);
  StateDict weights;  // for --export
  if (options.dry_run) {
    if (ranks.is_first()) std::cout << plan(experiment) << std::endl;
    return train::kExitOk;
  }
  if (options.eval_only) {
    train::Progress progress({.quiet = !ranks.is_first()});
    const Evaluation result = evaluate(experiment, progress);
    if (ranks.is_first())
      std::printf("val loss %.4f accuracy %.2f%% (%lld of %lld), %.0f images/s\n", result.loss, 100 * result.accuracy,
                  static_cast<long long>(result.correct), static_cast<long long>(result.images),
                  result.images_per_second);
    WEFT_CHECK(std::fflush(stdout) == 0, "standard output: the result could not be written");
    if (!options.export_file.empty()) weights = experiment.strategy->model_state();
  } else {
    if (ranks.is_first()) std::cout << "run     " << options.out << std::endl;
    Trainer trainer(experiment);
    const train::RunEnd end = trainer.run();
    if (end != train::RunEnd::finished) return train::exit_code(end);
    if (!options.export_file.empty()) weights = trainer.weights();
  }
  if (!options.export_file.empty()) {
    if (!ranks.is_first()) return train::kExitOk;
    write_safetensors(options.export_file, weights, experiment.texts());
    std::cout << "wrote   " << options.export_file << std::endl;
  }
  return train::kExitOk;
}

}  // namespace
}  // namespace weft::train_image

int main(int argc, char** argv) {
  return weft::train::training_main("train_image", [&] { return weft::train_image::run(argc, argv); });
}
