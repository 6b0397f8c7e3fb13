// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/train_image/experiment.h"
#include "apps/train_image/record.h"
#include "train/loader_task.h"
#include "train/progress.h"

namespace weft::train_image {

/// A batch as the model learns from it.
struct Labelled {
  Tensor images, labels;
  Tensor targets;  ///< the labels, or mixtures of them [count, classes]
  void fields(auto& v) { v("images", images), v("labels", labels), v("targets", targets); }
};

/// Trains an experiment's model and keeps its run folder, which rank 0 alone writes.
class Trainer final : public train::TypedTask<Labelled> {
 public:
  explicit Trainer(Experiment& experiment);

  /// Until the last epoch, --max-steps, or a signal. All ranks stop after the same step.
  train::RunEnd run() { return engine_.run_in(folder_.get()); }
  /// The weights of a finished run, by their averages where those are kept: whole on rank 0. All ranks call it.
  StateDict weights();

 private:
  double waited() const override { return loader().statistics().waited_seconds; }
  void before_step(Labelled& batch) override;
  train::Measured loss(const Labelled& batch) override;
  void log_steps(const train::StepSums::Totals& totals) override;
  train::Validation validate(const train::Epoch& epoch) override;
  void epoch_done(const train::Epoch& epoch, const train::Validation& validation) override;
  std::string save() override { return write(train::RunFolder::kLastCheckpoint); }
  void save_best() override { write(train::RunFolder::kBestCheckpoint); }
  void stopped(train::StopRule& rule) override;
  void ended(train::RunEnd end) override;
  std::string write(const char* name);
  void resume();
  void check_settings(const std::string& path, const Checkpoint& saved);

  Experiment& experiment_;
  std::unique_ptr<train::RunFolder> folder_;  // on rank 0, as all output
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Ema> averages_;
  optim::SchedulePtr schedule_;
  train::Engine engine_;
  train::Progress validation_;
  std::unique_ptr<Record> record_;  // on rank 0
  Evaluation last_;
  double trained_seconds_ = 0;
  int64_t trained_images_ = 0;
};

}  // namespace weft::train_image
