// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "apps/nersc/cnn.h"
#include "apps/nersc/learning_rate.h"
#include "apps/nersc/options.h"
#include "apps/nersc/random_fields.h"
#include "train/loader_task.h"
#include "train/record/run_folder.h"
#include "train/record/scalar_log.h"
#include "train/torch_optimizer.h"

namespace weft::nersc {

/// A tracked run's files (`log_to_wandb`, --sweep_id) other than checkpoints: `hyperparams.yaml`, and under `wandb/`
/// the numbers of each epoch as metrics.jsonl, TensorBoard file and config.yaml. Only the first rank writes.
class RunLog {
 public:
  /// `done`: epochs that an earlier run of this folder has made; what is logged of later ones goes.
  RunLog(const std::filesystem::path& folder, const Config& config, int64_t done);

  /// `epoch`: from 1.
  void log(int64_t epoch, const train::NamedNumbers& numbers) { log_.log(epoch, numbers); }
  /// The batch's first target and the model's prediction, side by side.
  void fields(int64_t epoch, const Tensor& target, const Tensor& prediction);
  void end(bool finished) { log_.end(finished); }

 private:
  train::ScalarLog log_;
};

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

/// Trains, validates and saves, epoch by epoch; goes on from `checkpoints/ckpt.tar` where that is there.
class Trainer final : public train::TypedTask<FieldBatch> {
 public:
  Trainer(const Options& options, const Config& config, const dist::World& ranks);

  /// All epochs that are left. All ranks call it.
  train::RunEnd run();

  /// The plan of the training, in lines.
  std::string describe() const;

 private:
  train::Measured loss(const FieldBatch& batch) override;
  void before_update() override;
  train::Validation validate(const train::Epoch& epoch) override;
  void epoch_done(const train::Epoch& epoch, const train::Validation&) override;
  void stopped(train::StopRule& rule) override;
  void ended(train::RunEnd end) override;

  bool is_tracked() const;
  /// A line of stdout.
  void say(const std::string& text) const;
  /// Locks the folder, so that no other run changes the checkpoint to resume from.
  void open_folder();
  train::TorchOptimizer torch_optimizer() const;
  std::filesystem::path checkpoint() const;
  void write(int64_t epoch, bool is_best) const;
  void load_if_there();
  void check_settings(const std::string& what, const std::string& settings) const;
  void log(const train::Epoch& epoch, double lr);

  const Options& options_;
  const Config& config_;
  const dist::World& ranks_;
  std::shared_ptr<Cnn> model_;
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<LearningRate> learning_rate_;
  RandomFields validation_;
  std::filesystem::path folder_;
  std::unique_ptr<train::RunFolder> run_folder_;  // on the first rank, as the next member; none in a dry run
  std::unique_ptr<RunLog> log_;                   // for a tracked run
  std::unique_ptr<train::Engine> engine_;
  double best_loss_ = std::numeric_limits<double>::infinity();
  int64_t best_epoch_ = 0;
  double val_loss_ = 0, val_seconds_ = 0;  // from the last validation: over all ranks, and this one's time
  Mean norms_;                             // norms of an epoch's gradients, in a tracked run
  FieldBatch shown_;                       // the last batch of the validation: y, and in x the model's prediction
};

/// The body of train_single_gpu, and of train_multi_gpu (`several`). Returns the exit code.
int train(int argc, char** argv, bool several);

}  // namespace weft::nersc
