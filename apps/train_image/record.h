// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/train_image/trainer.h"
#include "train/engine.h"
#include "train/metrics.h"
#include "train/run_folder.h"
#include "train/tensorboard.h"

namespace weft::train_image {

/// What a run folder holds beside checkpoints: config.toml, metrics.jsonl, TensorBoard files, summary.json. Of rank 0.
class Record {
 public:
  /// Of a run that goes on after `step`, what was written of later steps is dropped; with --resume of step 0, too: of a
  /// run that died before its first checkpoint. `experiment` and `folder` must outlive it.
  Record(const Experiment& experiment, const train::RunFolder& folder, int64_t step);

  /// What the steps since the last such row came to; `--log-interval` asks for them.
  void steps(const train::Position& position, const train::StepSums::Totals& totals, double lr);
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
