// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/train_image/experiment.h"
#include "train/engine.h"
#include "train/progress.h"
#include "train/record/confusion_matrix.h"
#include "train/record/metrics.h"
#include "train/record/run_folder.h"
#include "train/record/tensorboard.h"

namespace weft::train_image {

struct Evaluation {
  double loss = 0;                  ///< mean cross entropy per image
  double accuracy = 0;              ///< share of right answers
  int64_t correct = 0, images = 0;  ///< counts of all ranks
  double images_per_second = 0;
  train::ConfusionMatrix confusion{1};
};

/// Runs the experiment's model, in evaluation mode, over everything that the ranks' loaders have, each image once;
/// the counts of all ranks are added up. All ranks call it. `progress` shows how far this rank is.
Evaluation evaluate(Experiment& experiment, train::Progress& progress);

/// A run folder's files other than checkpoints: config.toml, metrics.jsonl, TensorBoard files, summary.json. Rank 0
/// only.
class Record {
 public:
  /// A run that goes on after `step` drops records of later steps. So does --resume of step 0, after a run that died
  /// before its first checkpoint. `experiment` and `folder` must outlive it.
  Record(const Experiment& experiment, const train::RunFolder& folder, int64_t step);

  /// Writes a row with the results of the steps since the last row, and the last step's rate and gradient
  /// (`--log-interval`).
  void steps(const train::Position& position, const train::StepSums::Totals& totals, double lr, double gradient_norm);
  void epoch(const train::Position& position, const train::Epoch& training, const Evaluation& evaluation);
  /// `images_per_second`: of this process.
  void end(bool finished, const train::Position& position, const Evaluation& last, double images_per_second);

 private:
  void show_samples();

  const Experiment& experiment_;
  const train::RunFolder& folder_;
  train::Metrics metrics_;
  train::TensorBoard board_;
};

}  // namespace weft::train_image
