// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <system_error>

#include "apps/nersc/checkpoint.h"
#include "apps/nersc/fields_cnn.h"
#include "apps/nersc/learning_rate.h"
#include "apps/nersc/options.h"
#include "apps/support/python_text.h"
#include "core/autograd.h"
#include "core/choose_device.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "core/text.h"
#include "io/atomic_file.h"
#include "io/checkpoint.h"
#include "nn/summary.h"
#include "optim/optimizers.h"
#include "train/loader_task.h"
#include "train/record/run_folder.h"
#include "train/record/scalar_log.h"
#include "train/record/stopwatch.h"
#include "train/resume.h"
#include "train/torch_optimizer.h"
#include "train/training_main.h"

namespace weft::nersc {
namespace {

/// The mean over a pass's steps of a number that each of them has, kept on the device.
class Mean {
 public:
  void add(const Tensor& value) {
    const Tensor now = value.detach().to(DType::f64).clone();
    sum_ = sum_.defined() ? sum_.add_(now) : now;
    ++count_;
  }
  double get() const { return sum_.defined() ? sum_.item() / static_cast<double>(count_) : 0; }

 private:
  Tensor sum_;
  int64_t count_ = 0;
};

/// The first channel of the first field as grey, 0 black and 1 white.
train::Canvas image_of(const Tensor& fields) {
  const auto [N, H, W, C] = fields.dims<4>();
  const std::vector<float> values = fields.slice(0, 0, 1).slice(3, 0, 1).to_vector<float>();
  train::Canvas image(static_cast<int>(W), static_cast<int>(H));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto grey = static_cast<uint8_t>(std::clamp(values[i], 0.0f, 1.0f) * 255);
    std::fill_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, grey);
  }
  return image;
}

using support::python_number;
using train::Stopwatch;

constexpr int kKept = 2;                                 // number of last checkpoints
constexpr uint64_t kValidation = 0x9E3779B97F4A7C15ull;  // a seed of its own

std::shared_ptr<Cnn> make_model(const Config& config, Device device) {
  manual_seed(static_cast<uint64_t>(config.seed));
  auto model = std::make_shared<Cnn>(CnnOptions{.in = config.in_chan, .out = config.out_chan, .depth = config.depth});
  model->to(device);
  return model;
}

RandomFieldsOptions fields_options(const Config& c, const dist::World& ranks, bool training) {
  const uint64_t seed = static_cast<uint64_t>(c.seed) ^ (training ? 0 : kValidation);
  return {.samples = c.num_samples,
          .size = c.img_size,
          .in = c.in_chan,
          .out = c.out_chan,
          .workers = static_cast<int>(c.num_data_workers),
          .seed = seed,
          .device = ranks.device()};
}

/// The batch size counts all ranks, and need not be divisible by their number.
data::Sampler sampler(const Config& c, const dist::World& ranks, bool training) {
  const int64_t batch = training ? c.batch_size : c.valid_batch_size;
  WEFT_CHECK(batch >= ranks.size(), training ? "batch_size" : "valid_batch_size",
             ": expected at least one sample for each of ", ranks.size(), " ranks, got ", batch);
  WEFT_CHECK(c.num_samples >= batch, "data: expected at least the ", batch, " samples of a batch, got ", c.num_samples);
  return data::Sampler(c.num_samples, {.seed = static_cast<uint64_t>(c.seed),
                                       .shuffle = training,
                                       .rank = ranks.rank(),
                                       .world = ranks.size(),
                                       .tail = data::Tail::joined,
                                       .step = batch});
}

optim::AdamOptions adam_options(const Config& config) { return {.lr = config.lr}; }
optim::SgdOptions sgd_options(const Config& config) { return {.lr = config.lr, .momentum = config.momentum}; }

/// Trains, validates and saves, epoch by epoch; goes on from `checkpoints/ckpt.tar` where that is there.
class Trainer final : public train::TypedTask<FieldBatch> {
 public:
  Trainer(const Options& options, const Config& config, const dist::World& ranks)
      : TypedTask(std::make_shared<RandomFields>(fields_options(config, ranks, true), sampler(config, ranks, true))),
        options_(options),
        config_(config),
        ranks_(ranks),
        model_(make_model(config, ranks.device())),
        strategy_(train::make_strategy({}, model_, ranks)),
        validation_(fields_options(config, ranks, false), sampler(config, ranks, false)),
        folder_(experiment_folder(options, config)) {
    if (config.optimizer == "sgd")
      optimizer_ = std::make_unique<optim::SGD>(strategy_->parameters(), sgd_options(config));
    else
      optimizer_ = std::make_unique<optim::Adam>(strategy_->parameters(), adam_options(config));
    learning_rate_ = std::make_unique<LearningRate>(config, *optimizer_);
    const bool shows = ranks.is_first() && config.log_to_screen;
    engine_ = std::make_unique<train::Engine>(*this, train::Parts{ranks, *model_, *strategy_, *optimizer_},
                                              train::EngineOptions{.epochs = config.max_epochs,
                                                                   .sum = train::LossSum::per_step,
                                                                   .saves_epochs = false,
                                                                   .line_before_validation = true,
                                                                   .quiet = !shows});
    if (!options.dry_run) open_folder();
    load_if_there();
  }

  /// All epochs that are left. All ranks call it.
  train::RunEnd run() {
    if (ranks_.is_first() && is_tracked()) begin_log();
    if (ranks_.is_first() && config_.log_to_screen) {
      if (log_) {
        say(nn::summary(*model_, {1, config_.img_size, config_.img_size, config_.in_chan}));
        say("number of model parameters: " + python_number(static_cast<double>(nn::parameter_count(*model_)) / 1e6));
      }
      say("Starting training loop...");
    }
    const train::RunEnd end = engine_->run();
    if (end == train::RunEnd::finished) say(is_tracked() ? "DONE" : "Training complete");
    return end;
  }

  /// The plan of the training, in lines.
  std::string describe() const {
    const Config& c = config_;
    const int64_t first_epoch = engine_->position().epoch;
    const std::string left = first_epoch < c.max_epochs ? str("epochs ", first_epoch + 1, " to ", c.max_epochs)
                                                        : str("nothing: all ", c.max_epochs, " epochs are done");
    return str("config  ", options_.yaml_config, ", ", options_.config, "\nmodel   ", c.model, ", ",
               nn::parameter_count(*model_), " parameters\ndata    ", c.num_samples, " random samples [", c.in_chan,
               ",", c.img_size, ",", c.img_size, "] -> [", c.out_chan, ",", c.img_size, ",", c.img_size, "]; ",
               loader().steps_per_epoch(), " steps of ", batch_size(), " samples on each of ", ranks_.size(),
               ranks_.size() == 1 ? " rank" : " ranks", " an epoch\nwith    ", c.optimizer, ", lr ", c.lr,
               ", schedule ", c.scheduler, "\nrun     ", folder_.string(), ": ", left, '\n');
  }

 private:
  train::Measured loss(const FieldBatch& batch) override { return {mse_loss(engine_->forward(batch.x), batch.y)}; }

  void before_update() override {
    if (log_) norms_.add(norm(optimizer_->flat()->gradient()));
  }

  train::Validation validate(const train::Epoch& epoch) override {
    const Stopwatch watch;
    const NoGrad no_grad;
    Mean losses;
    model_->eval();
    validation_.start(epoch.number - 1);
    while (const auto batch = validation_.next()) {
      const Tensor prediction = strategy_->forward(batch->x);
      const double share = static_cast<double>(batch->count) / validation_.mean_count(batch->step);
      losses.add(mul(mse_loss(prediction, batch->y), share));
      if (log_) shown_ = {prediction, batch->y};
    }
    val_loss_ = ranks_.sum({losses.get()}, "validation loss")[0] / ranks_.size();
    val_seconds_ = watch.seconds();
    return {};
  }

  void epoch_done(const train::Epoch& epoch, const train::Validation&) override {
    WEFT_CHECK(std::isfinite(val_loss_), "the loss is not a number in epoch ", epoch.number, ". Choose a smaller lr");
    const double lr = optimizer_->lr(0);
    learning_rate_->step(val_loss_);
    const bool is_best = val_loss_ <= best_loss_;
    if (is_best) best_loss_ = val_loss_, best_epoch_ = epoch.number;
    if (ranks_.is_first() && config_.save_checkpoint) write(epoch.number - 1, is_best);
    if (log_) log(epoch, lr);
    norms_ = {};
    if (!ranks_.is_first() || !config_.log_to_screen) return;
    say(str("Time taken for epoch ", epoch.number, " is ", python_number(epoch.seconds + val_seconds_), " sec; with ",
            python_number(epoch.seconds), '/', python_number(val_seconds_), " in tr/val"));
    say(str("Loss = ", python_number(epoch.loss), ", Val loss = ", python_number(val_loss_)));
  }

  void stopped(train::StopRule& rule) override {
    if (!ranks_.is_first()) return;
    const int64_t done = engine_->position().epoch;
    say(str(
        "stopped by ", rule.reason(), " in epoch ", done + 1, "; ",
        config_.save_checkpoint && done > 0 ? str(checkpoint().string(), " holds epoch ", done) : "nothing is saved"));
  }

  void ended(train::RunEnd end) override {
    if (log_) log_->end(end == train::RunEnd::finished);
  }

  bool is_tracked() const { return config_.track || !options_.sweep_id.empty(); }

  /// A line of stdout.
  void say(const std::string& text) const {
    std::cout << (is_tracked() ? support::python_log_line(text) : text) + "\n"
              << std::flush;  // a line of one write: ranks share it
  }

  /// Locks the folder, so that no other run changes the checkpoint to resume from.
  void open_folder() {
    std::error_code error;
    if (ranks_.is_first()) std::filesystem::create_directories(folder_ / "checkpoints", error);
    WEFT_CHECK(!error, "root_dir: cannot create ", (folder_ / "checkpoints").string(), ": ", error.message());
    run_folder_ = train::open_run_folder(folder_, ranks_);
  }

  train::TorchOptimizer torch_optimizer() const {
    return {*model_,
            *optimizer_,
            {{.parameters = strategy_->parameters()}},
            config_.optimizer == "sgd" ? train::torch_options(sgd_options(config_))
                                       : train::torch_options(adam_options(config_))};
  }

  std::filesystem::path checkpoint() const { return folder_ / "checkpoints" / "ckpt.tar"; }

  void write(int64_t epoch, bool is_best) const {
    const Checkpoint checkpoint_now{.iters = engine_->position().step,
                                    .epoch = epoch,
                                    .model_state = model_->state_dict(),
                                    .optimizer_state_dict = torch_optimizer().state(),
                                    .scheduler_state_dict = learning_rate_->state(),
                                    .best_val_loss = best_loss_,
                                    .best_epoch = best_epoch_,
                                    .settings = yaml(config_)};
    const bool prefixed = ranks_.size() > 1;
    if (run_folder_) run_folder_->confirm();
    if (is_best)
      write_checkpoint(best_of(checkpoint()), checkpoint_now, prefixed);  // first: the last refers to the best
    write_checkpoint(checkpoint(), checkpoint_now, prefixed, kKept);
  }

  void load_if_there() {
    const std::string there =
        ranks_.is_first() && std::filesystem::exists(std::filesystem::symlink_status(checkpoint())) ? "yes" : "no";
    if (ranks_.first_says(there, "is there a checkpoint") == "no") return;
    const std::string what = "checkpoint " + checkpoint().string();
    std::string note;
    const Checkpoint saved = read_last_checkpoint(checkpoint(), note);
    if (ranks_.is_first() && !note.empty()) say("warning: " + printable(note));
    train::require_same_checkpoint(
        ranks_, checkpoint().string(),
        {{{"model_state", saved.model_state}}, {{"iters", saved.iters}, {"epoch", saved.epoch}}, {}, {}});
    require_match(what + ": model_state", model_->state_dict(), saved.model_state);
    check_settings(what, saved.settings);
    model_->load_state_dict(saved.model_state);
    torch_optimizer().load(saved.optimizer_state_dict, saved.iters, what + ": optimizer_state_dict");
    learning_rate_->load(saved.scheduler_state_dict, what + ": scheduler_state_dict");
    engine_->position() = {.epoch = saved.epoch + 1, .step = saved.iters};
    best_loss_ = saved.best_val_loss;
    best_epoch_ = saved.best_epoch;
    say("Loading checkpoint " + checkpoint().string());
  }

  /// Refuses changes that a resumed run may not make, and notes the others.
  void check_settings(const std::string& what, const std::string& settings) const {
    // How long, how fast and where a run goes.
    constexpr const char* kIgnored =
        "max_epochs num_data_workers log_to_screen save_checkpoint log_to_wandb entity project";
    const auto changes = train::changed_settings(settings, yaml(config_), kIgnored);
    WEFT_CHECK(!changes.contains("optimizer"), what, " holds the state of another optimizer (", changes.at("optimizer"),
               "): name another --run_num");
    if (ranks_.is_first() && !changes.empty()) say(train::note_of(changes));
  }

  /// Lines that an earlier run of this folder has logged of later epochs go.
  void begin_log() {
    const int64_t done = engine_->position().epoch;
    log_ = std::make_unique<train::ScalarLog>(folder_ / "wandb", done > 0 ? done : -1);
    write_atomically(folder_ / "hyperparams.yaml", yaml(config_), "hyperparams");
    log_->config(hyper_parameters(config_));
  }

  void log(const train::Epoch& epoch, double lr) {
    log_->log(epoch.number, {{"train_loss", epoch.loss},
                             {"val_loss", val_loss_},
                             {"grad", norms_.get()},
                             {"wt_norm", norm(optimizer_->flat()->master()).item()},
                             {"best_val_loss", best_loss_},
                             {"best_epoch", static_cast<double>(best_epoch_)},
                             {"learning_rate", lr},
                             {"time_per_epoch", epoch.seconds + val_seconds_}});
    // The first target of the last batch, and its prediction.
    if (train::have_png()) log_->image("vis", train::grid({image_of(shown_.y), image_of(shown_.x)}, 2), epoch.number);
  }

  const Options& options_;
  const Config& config_;
  const dist::World& ranks_;
  std::shared_ptr<Cnn> model_;
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<LearningRate> learning_rate_;
  RandomFields validation_;
  std::filesystem::path folder_;
  std::unique_ptr<train::RunFolder> run_folder_;  // the first rank has it, and the log; none in a dry run
  /// A tracked run (`log_to_wandb`, --sweep_id) writes the numbers of each epoch under `wandb/`.
  std::unique_ptr<train::ScalarLog> log_;
  std::unique_ptr<train::Engine> engine_;
  double best_loss_ = std::numeric_limits<double>::infinity();
  int64_t best_epoch_ = 0;
  double val_loss_ = 0, val_seconds_ = 0;  // from the last validation: over all ranks, and this one's time
  Mean norms_;                             // norms of an epoch's gradients, in a tracked run
  FieldBatch shown_;                       // the last batch of the validation: y, and in x the model's prediction
};

}  // namespace

int train(int argc, char** argv, bool several) {
  return train::training_main(several ? "train_multi_gpu" : "train_single_gpu", [&] {
    Options options;
    if (!parse_options(argc, argv, several, options)) return train::kExitOk;
    const Config config = read_config(options);
    // One GPU means alone, also in an allocation of several tasks.
    const dist::World ranks = dist::init({.alone = !several, .backend = options.backend, .device = options.device});
    if (several)
      std::cout << str("running on rank ", ranks.rank(), " with world size ", ranks.size(), "\n") << std::flush;
    train::require_same_settings(ranks, yaml(config), "num_data_workers log_to_screen");
    Trainer trainer(options, config, ranks);
    if (options.dry_run) {
      if (ranks.is_first())
        std::cout << trainer.describe() << "device  " << weft::describe(ranks.device())
                  << "\ndry run: would train this; nothing is written\n";
      return train::kExitOk;
    }
    return train::exit_code(trainer.run());
  });
}

}  // namespace weft::nersc
