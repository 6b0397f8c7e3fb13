// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "apps/linear_probe/features.h"
#include "apps/linear_probe/options.h"
#include "apps/linear_probe/session.h"
#include "nn/module.h"
#include "optim/optimizers.h"
#include "train/engine.h"

namespace weft::linear_probe {

/// What a phase trains, and how.
struct PhaseOptions {
  double lr = 1e-3;
  double layer_decay = 1;    ///< see optim/layer_decay.h; 1: one rate
  std::string saved_prefix;  ///< a checkpoint has the weights whose names begin so: those that the phase changes
};

/// Some epochs of one model with a fresh Adam, or what the session's checkpoint has left of them; validation after
/// each. Prints the lines of the workflow.
class Phase final : public train::Task {
 public:
  /// Trains `strategy`, whose module is `model`. All ranks make it.
  Phase(const Options& options, const dist::World& ranks, Session& session, train::Strategy& strategy,
        nn::Module& model, const PhaseOptions& how, Source& training, Source& validation);

  /// False: the run is to stop, and its checkpoint is written. All ranks call it.
  bool run();

 private:
  int64_t samples() const override { return training_.examples(); }
  int64_t batch_size() const override { return options_.batch_size; }
  int64_t batches() const override { return training_.batches(); }
  double mean_samples(int64_t batch) const override { return training_.mean_examples(batch); }
  void start_epoch(int64_t epoch, int64_t batch) override { training_.start(epoch, batch); }
  std::optional<train::Batch> next() override;
  void epoch_begins() override;
  train::Measured loss(const std::vector<Tensor>& batch) override;
  train::Validation validate(const train::Epoch&) override;
  void epoch_done(const train::Epoch& epoch, const train::Validation&) override;
  std::string save() override;

  const Options& options_;
  const dist::World& ranks_;
  Session& session_;
  Source &training_, &validation_;
  double lr_;
  optim::AdamW adam_;
  std::unique_ptr<optim::Ema> averages_;
  train::Engine engine_;
  double accuracy_ = 0;  // of the last validation
};

}  // namespace weft::linear_probe
