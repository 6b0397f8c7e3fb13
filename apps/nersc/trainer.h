// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <memory>

#include "apps/nersc/cnn.h"
#include "apps/nersc/learning_rate.h"
#include "apps/nersc/options.h"
#include "apps/nersc/random_fields.h"
#include "apps/nersc/run_log.h"
#include "apps/support/parallel.h"
#include "apps/support/progress.h"
#include "apps/support/run_folder.h"
#include "apps/support/weights/torch_optimizer.h"

namespace weft::nersc {

/// Trains, validates and saves, epoch by epoch; goes on from `checkpoints/ckpt.tar` where that is there.
class Trainer {
 public:
  Trainer(const Options& options, const Config& config, const support::Ranks& ranks);

  /// All epochs that are left. All ranks call it.
  void run();

  /// What would be trained, in lines.
  std::string describe() const;

 private:
  struct Epoch {
    double train_loss = 0, val_loss = 0;        // means of the batches' losses, over all ranks
    double train_seconds = 0, val_seconds = 0;  // of this rank
    double gradient_norm = 0;                   // mean over the steps
  };

  bool is_tracked() const;
  /// A line of stdout.
  void say(const std::string& text) const;
  /// So that no other run changes what this one goes on from.
  void open_folder();
  void train(int64_t epoch, Epoch& result);
  void validate(int64_t epoch, Epoch& result);
  support::TorchOptimizer torch_optimizer() const;
  std::filesystem::path checkpoint() const;
  void save(int64_t epoch, bool is_best) const;
  void load_if_there();
  /// `epoch`: from 1.
  void log(int64_t epoch, const Epoch& result, double lr, double seconds);

  const Options& options_;
  const Config& config_;
  const support::Ranks& ranks_;
  std::shared_ptr<Cnn> model_;
  std::unique_ptr<support::Parallel> parallel_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<LearningRate> learning_rate_;
  RandomFields training_, validation_;
  std::filesystem::path folder_;
  std::unique_ptr<support::RunFolder> run_folder_;  // of the first rank, as what follows; none in a dry run
  std::unique_ptr<support::Progress> progress_;
  std::unique_ptr<RunLog> log_;  // of a tracked run
  int64_t iters_ = 0, first_epoch_ = 0;
  double best_loss_ = std::numeric_limits<double>::infinity();
  int64_t best_epoch_ = 0;
  FieldBatch shown_;  // the last batch of the validation: y, and in x what the model makes of it
};

}  // namespace weft::nersc
