// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/trainer.h"

#include <cmath>
#include <iostream>
#include <system_error>

#include "apps/nersc/checkpoint.h"
#include "apps/support/checkpoint.h"
#include "apps/support/progress.h"
#include "apps/support/python_number.h"
#include "apps/support/stopwatch.h"
#include "core/autograd.h"
#include "core/ops/mse_loss.h"
#include "core/ops/norm.h"
#include "core/random.h"
#include "nn/summary.h"
#include "optim/sgd.h"

namespace weft::nersc {
namespace {

using support::python_number;
using support::Stopwatch;

constexpr uint64_t kValidation = 0x9E3779B97F4A7C15ull;  // a seed of its own

std::shared_ptr<Cnn> make_model(const Config& config, Device device) {
  manual_seed(static_cast<uint64_t>(config.seed));
  auto model = std::make_shared<Cnn>(CnnOptions{.in = config.in_chan, .out = config.out_chan, .depth = config.depth});
  model->to(device);
  return model;
}

/// The share of a batch that this rank has.
int64_t local_batch(const char* key, int64_t global, int ranks) {
  WEFT_CHECK(global >= ranks, key, ": expected at least one sample for each of ", ranks, " ranks, got ", global);
  return global / ranks;
}

RandomFieldsOptions fields_options(const Config& c, const support::Ranks& ranks, bool training) {
  const uint64_t seed = static_cast<uint64_t>(c.seed) ^ (training ? 0 : kValidation);
  return {.samples = c.num_samples,
          .size = c.img_size,
          .in = c.in_chan,
          .out = c.out_chan,
          .batch_size = training ? local_batch("batch_size", c.batch_size, ranks.size())
                                 : local_batch("valid_batch_size", c.valid_batch_size, ranks.size()),
          .workers = static_cast<int>(c.num_data_workers),
          .seed = seed,
          .device = ranks.device()};
}

data::Sampler sampler(const Config& c, const support::Ranks& ranks, bool shuffle) {
  return data::Sampler(
      c.num_samples,
      {.seed = static_cast<uint64_t>(c.seed), .shuffle = shuffle, .rank = ranks.rank(), .world = ranks.size()});
}

optim::AdamOptions adam_options(const Config& config) { return {.lr = config.lr}; }
optim::SgdOptions sgd_options(const Config& config) { return {.lr = config.lr, .momentum = config.momentum}; }

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

double mean_of_ranks(const support::Ranks& ranks, double value, const std::string& what) {
  return ranks.sum({value}, what)[0] / ranks.size();
}

}  // namespace

Trainer::Trainer(const Options& options, const Config& config, const support::Ranks& ranks)
    : options_(options),
      config_(config),
      ranks_(ranks),
      model_(make_model(config, ranks.device())),
      parallel_(support::make_parallel({}, model_, ranks)),
      training_(fields_options(config, ranks, true), sampler(config, ranks, true)),
      validation_(fields_options(config, ranks, false), sampler(config, ranks, false)),
      folder_(experiment_folder(options, config)) {
  if (config.optimizer == "sgd")
    optimizer_ = std::make_unique<optim::SGD>(parallel_->parameters(), sgd_options(config));
  else
    optimizer_ = std::make_unique<optim::Adam>(parallel_->parameters(), adam_options(config));
  learning_rate_ = std::make_unique<LearningRate>(config, *optimizer_);
  if (!options.dry_run) open_folder();
  load_if_there();
}

support::TorchOptimizer Trainer::torch_optimizer() const {
  return {*model_,
          *optimizer_,
          {{.parameters = parallel_->parameters()}},
          config_.optimizer == "sgd" ? support::torch_options(sgd_options(config_))
                                     : support::torch_options(adam_options(config_))};
}

std::filesystem::path Trainer::checkpoint() const { return folder_ / "checkpoints" / "ckpt.tar"; }

void Trainer::load_if_there() {
  const std::string there = ranks_.is_first() && std::filesystem::exists(checkpoint()) ? "yes" : "no";
  if (ranks_.first_says(there, "is there a checkpoint") == "no") return;
  const std::string what = "checkpoint " + checkpoint().string();
  const Checkpoint saved = read_checkpoint(checkpoint());
  support::require_match(what + ": model_state", model_->state_dict(), saved.model_state);
  model_->load_state_dict(saved.model_state);
  torch_optimizer().load(saved.optimizer_state_dict, saved.iters, what + ": optimizer_state_dict");
  learning_rate_->load(saved.scheduler_state_dict, what + ": scheduler_state_dict");
  iters_ = saved.iters;
  first_epoch_ = saved.epoch + 1;
  best_loss_ = saved.best_val_loss;
  best_epoch_ = saved.best_epoch;
  if (ranks_.is_first()) say("Loading checkpoint " + checkpoint().string());
}

void Trainer::save(int64_t epoch, bool is_best) const {
  const Checkpoint checkpoint_now{.iters = iters_,
                                  .epoch = epoch,
                                  .model_state = model_->state_dict(),
                                  .optimizer_state_dict = torch_optimizer().state(),
                                  .scheduler_state_dict = learning_rate_->state(),
                                  .best_val_loss = best_loss_,
                                  .best_epoch = best_epoch_};
  const bool prefixed = ranks_.size() > 1;
  write_checkpoint(checkpoint(), checkpoint_now, prefixed);
  if (is_best) write_checkpoint(best_of(checkpoint()), checkpoint_now, prefixed);
}

void Trainer::train(int64_t epoch, Epoch& result) {
  const Stopwatch watch;
  Mean losses, norms;
  model_->train();
  training_.start(epoch);
  while (const auto batch = training_.next()) {
    const Tensor loss = mse_loss(parallel_->forward(batch->x), batch->y);
    optimizer_->zero_grad();
    loss.backward();
    if (log_) norms.add(norm(optimizer_->flat()->gradient()));
    optimizer_->step();
    losses.add(loss);
    ++iters_;
    if (progress_) progress_->step({.images = batch->x.size(0) * ranks_.size(), .loss = loss.item()});
  }
  result.train_loss = mean_of_ranks(ranks_, losses.get(), "training loss");
  result.gradient_norm = norms.get();
  result.train_seconds = watch.seconds();
}

void Trainer::validate(int64_t epoch, Epoch& result) {
  const Stopwatch watch;
  const NoGrad no_grad;
  Mean losses;
  model_->eval();
  validation_.start(epoch);
  while (const auto batch = validation_.next()) {
    const Tensor prediction = parallel_->forward(batch->x);
    losses.add(mse_loss(prediction, batch->y));
    if (log_) shown_ = {prediction, batch->y};
  }
  result.val_loss = mean_of_ranks(ranks_, losses.get(), "validation loss");
  result.val_seconds = watch.seconds();
}

void Trainer::run() {
  if (ranks_.is_first() && is_tracked()) log_ = std::make_unique<RunLog>(folder_, config_, first_epoch_);
  const bool prints = ranks_.is_first() && config_.log_to_screen;
  if (prints) {
    progress_ = std::make_unique<support::Progress>();
    if (log_) {
      say(nn::summary(*model_, {1, config_.img_size, config_.img_size, config_.in_chan}));
      say("number of model parameters: " + python_number(static_cast<double>(nn::parameter_count(*model_)) / 1e6));
    }
    say("Starting training loop...");
  }
  for (int64_t epoch = first_epoch_; epoch < config_.max_epochs; ++epoch) {
    const Stopwatch watch;
    Epoch result;
    if (progress_) progress_->begin(str("epoch ", epoch + 1, "/", config_.max_epochs), training_.steps_per_epoch());
    train(epoch, result);
    if (progress_) progress_->end();
    validate(epoch, result);
    WEFT_CHECK(std::isfinite(result.train_loss) && std::isfinite(result.val_loss), "the loss is not a number in epoch ",
               epoch + 1, ". Choose a smaller lr");
    const double lr = optimizer_->lr();
    learning_rate_->step(result.val_loss);
    const bool is_best = result.val_loss <= best_loss_;
    if (is_best) best_loss_ = result.val_loss, best_epoch_ = epoch + 1;
    if (ranks_.is_first() && config_.save_checkpoint) save(epoch, is_best);
    if (log_) log(epoch + 1, result, lr, watch.seconds());
    if (!prints) continue;
    say(str("Time taken for epoch ", epoch + 1, " is ", python_number(watch.seconds()), " sec; with ",
            python_number(result.train_seconds), '/', python_number(result.val_seconds), " in tr/val"));
    say(str("Loss = ", python_number(result.train_loss), ", Val loss = ", python_number(result.val_loss)));
  }
  if (log_) log_->end();
  ranks_.wait_for_all("the end of training");
  say(is_tracked() ? "DONE" : "Training complete");
}

void Trainer::log(int64_t epoch, const Epoch& result, double lr, double seconds) {
  log_->log(epoch, {{"train_loss", result.train_loss},
                    {"val_loss", result.val_loss},
                    {"grad", result.gradient_norm},
                    {"wt_norm", norm(optimizer_->flat()->master()).item()},
                    {"best_val_loss", best_loss_},
                    {"best_epoch", static_cast<double>(best_epoch_)},
                    {"learning_rate", lr},
                    {"time_per_epoch", seconds}});
  log_->fields(epoch, shown_.y, shown_.x);
}

bool Trainer::is_tracked() const { return config_.track || !options_.sweep_id.empty(); }

void Trainer::say(const std::string& text) const {
  std::cout << (is_tracked() ? logging_line(text) : text) + "\n" << std::flush;  // a line of one write: ranks share it
}

void Trainer::open_folder() {
  std::error_code error;
  if (ranks_.is_first()) std::filesystem::create_directories(folder_ / "checkpoints", error);
  WEFT_CHECK(!error, "root_dir: cannot create ", (folder_ / "checkpoints").string(), ": ", error.message());
  run_folder_ = support::open_run_folder(folder_, ranks_);
}

std::string Trainer::describe() const {
  const Config& c = config_;
  const std::string left = first_epoch_ < c.max_epochs ? str("epochs ", first_epoch_ + 1, " to ", c.max_epochs)
                                                       : str("nothing: all ", c.max_epochs, " epochs are done");
  return str("config  ", options_.yaml_config, ", ", options_.config, "\nmodel   ", c.model, ", ",
             nn::parameter_count(*model_), " parameters\ndata    ", c.num_samples, " random samples [", c.in_chan, ",",
             c.img_size, ",", c.img_size, "] -> [", c.out_chan, ",", c.img_size, ",", c.img_size, "]; ",
             training_.steps_per_epoch(), " steps of ", local_batch("batch_size", c.batch_size, ranks_.size()),
             " samples on each of ", ranks_.size(), ranks_.size() == 1 ? " rank" : " ranks", " an epoch\nwith    ",
             c.optimizer, ", lr ", c.lr, ", schedule ", c.scheduler, "\nrun     ", folder_.string(), ": ", left, '\n');
}

}  // namespace weft::nersc
