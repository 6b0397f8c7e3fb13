// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/support/checkpoint.h"
#include "apps/support/metrics.h"
#include "apps/support/progress.h"
#include "apps/support/run_folder.h"
#include "apps/support/signals.h"
#include "apps/support/stop_rule.h"
#include "apps/support/tensorboard.h"
#include "apps/train_image/evaluation.h"
#include "apps/train_image/experiment.h"
#include "apps/train_image/profile_window.h"
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
  /// Where the run stands, and the running sums of the epoch under way.
  struct Position {
    int64_t epoch = 0, step_in_epoch = 0, step = 0;
    int64_t images = 0;
    double loss_sum = 0, correct = 0;
    double best_accuracy = -1;
    int64_t best_epoch = -1;
  };

  void resume();
  bool train_epoch();
  void make_graph();
  void train_step(const data::Batch& batch);
  void update(const Tensor& images, const Tensor& targets, const Tensor& labels);
  Tensor forward(const Tensor& images);
  support::StepSums::Totals read_sums();
  [[noreturn]] void fail_not_finite(bool here, const Tensor& images, const Tensor& targets, double loss);
  void finish_epoch();
  void write_metrics(double train_loss, double train_accuracy, const support::ProgressState& state);
  void save(const std::filesystem::path& path);
  void note(const std::string& line);
  void write_summary(bool finished);
  void show_samples();
  bool must_stop();

  Experiment& experiment_;
  const support::Ranks& ranks_;
  std::unique_ptr<support::RunFolder> folder_;  // of rank 0, as all that is written
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Ema> averages_;
  optim::SchedulePtr schedule_;
  Position position_;
  std::unique_ptr<support::Metrics> metrics_;
  std::unique_ptr<support::TensorBoard> board_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere_;  // of the other ranks' progress
  support::Progress progress_;
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
