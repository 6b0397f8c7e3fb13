// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/support/metrics.h"
#include "apps/support/progress.h"
#include "apps/support/run_folder.h"
#include "apps/support/tensorboard.h"
#include "apps/train_image/evaluation.h"
#include "apps/train_image/position.h"

namespace weft::train_image {

/// What an epoch's training came to.
struct Training {
  double loss = 0, accuracy = 0;  ///< means over the epoch's pictures
  double lr = 0;
  support::ProgressState pace;
};

/// What a run folder holds beside checkpoints: config.toml, metrics.jsonl, TensorBoard files, summary.json. Of rank 0.
class Record {
 public:
  /// Of a run that goes on behind `step` (0: a new one), what was written of later steps is dropped. `experiment` and
  /// `folder` must outlive it.
  Record(const Experiment& experiment, const support::RunFolder& folder, int64_t step);

  void epoch(const Position& position, const Training& training, const Evaluation& evaluation);
  /// `images_per_second`: of this process.
  void end(bool finished, const Position& position, const Evaluation& last, double images_per_second);

 private:
  void show_samples();

  const Experiment& experiment_;
  const support::RunFolder& folder_;
  support::Metrics metrics_;
  support::TensorBoard board_;
};

}  // namespace weft::train_image
