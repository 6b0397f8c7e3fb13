// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/support/checkpoint.h"
#include "apps/support/progress.h"
#include "apps/support/signals.h"
#include "apps/support/stop_rule.h"
#include "apps/train_image/profile_window.h"
#include "apps/train_image/record.h"
#include "apps/train_image/run_state.h"
#include "core/graph.h"

namespace weft::train_image {

/// Trains an experiment's model and keeps its run folder, which rank 0 alone writes. The state between two steps is all
/// in `Position`, the model, the optimizer and the random generator, so a resumed run does bit for bit what an
/// undisturbed one would have done.
class Trainer {
 public:
  explicit Trainer(Experiment& experiment);

  /// Until the last epoch, --max-steps, or a signal. All ranks stop behind the same step.
  support::RunEnd run();
  /// The weights of a finished run, by their averages where those are kept: whole on rank 0. All ranks call it.
  StateDict weights();

 private:
  bool train_epoch();
  void make_graph();
  void train_step(const data::Batch& batch);
  void update(const Tensor& images, const Tensor& targets, const Tensor& labels);
  Tensor forward(const Tensor& images);
  support::StepSums::Totals read_sums();
  void finish_epoch();
  std::filesystem::path file(const char* name) const;  // of the run folder
  void note(const std::string& line);
  bool must_stop();

  Experiment& experiment_;
  const support::Ranks& ranks_;
  std::unique_ptr<support::RunFolder> folder_;  // of rank 0, as all that is written
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Ema> averages_;
  optim::SchedulePtr schedule_;
  Position position_;
  RunState state_;
  std::unique_ptr<Record> record_;                           // of rank 0
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere_;  // of the other ranks' progress
  support::Progress progress_, validation_;
  support::Signals signals_;
  support::StepSums sums_;
  support::StopRule stop_;
  ProfileWindow profile_;

  std::unique_ptr<GraphedFunction> graph_;  // update(); none: each step is run op by op
  double trained_seconds_ = 0;
  int64_t trained_images_ = 0;
  Evaluation last_;
};

}  // namespace weft::train_image
