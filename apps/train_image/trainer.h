// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/support/checkpoint.h"
#include "apps/support/metrics.h"
#include "apps/support/progress.h"
#include "apps/support/run_folder.h"
#include "apps/support/signals.h"
#include "apps/support/tensorboard.h"
#include "apps/train_image/evaluation.h"
#include "apps/train_image/experiment.h"
#include "apps/train_image/profile_window.h"
#include "core/graph.h"

namespace weft::train_image {

/// Trains an experiment's model and keeps its run folder. The state between two steps is all in `Position`, the model,
/// the optimizer and the random generator, so a resumed run does bit for bit what an undisturbed one would have done.
class Trainer {
 public:
  explicit Trainer(Experiment& experiment);

  /// Until the last epoch, --max-steps, or SIGINT / SIGTERM. Returns whether the last epoch was finished.
  bool run();

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
  void read_sums();
  void finish_epoch();
  void save(const std::filesystem::path& path) const;
  void note(const std::string& line);
  void write_summary(bool finished);
  void show_samples();
  bool must_stop() const;

  Experiment& experiment_;
  support::RunFolder folder_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::SchedulePtr schedule_;
  Position position_;
  std::unique_ptr<support::Metrics> metrics_;
  std::unique_ptr<support::TensorBoard> board_;
  support::Progress progress_;
  support::Signals signals_;
  ProfileWindow profile_;

  // Sums of the steps since they were last read, on the device: reading them each step would make a GPU wait.
  Tensor loss_sum_, correct_sum_;
  std::unique_ptr<GraphedFunction> graph_;  // update(); none: each step is run op by op
  int64_t unread_images_ = 0, unread_steps_ = 0;
  double unread_wait_ = 0;
  double trained_seconds_ = 0;
  int64_t trained_images_ = 0;
  Evaluation last_;
};

}  // namespace weft::train_image
