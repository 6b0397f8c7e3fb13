// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/finetune/evaluation.h"
#include "apps/finetune/trainer_state.h"
#include "train/record/metrics.h"
#include "train/record/run_folder.h"
#include "train/record/tensorboard.h"

namespace weft::finetune {

/// The content of a training line, for the steps since the line before.
struct TrainLine {
  double loss = 0;           ///< mean over the steps
  double gradient_norm = 0;  ///< norm in the last step, before clipping
  double lr = 0;             ///< rate of the last step
};

/// The amount of work, and its time.
struct Effort {
  double seconds = 0;             ///< time of the whole run, evaluation and checkpoints included
  double texts = 0;               ///< texts of all epochs
  double texts_per_second = 0;    ///< over the last epoch's steps alone
  int64_t peak_tensor_bytes = 0;  ///< most at once on this rank's device
};

/// Rank 0's output about a run, in the lines of Hugging Face's Trainer, and its files other than checkpoints:
/// config.toml, metrics.jsonl, TensorBoard files, summary.json. Lines go into the state's history, too.
class Record {
 public:
  /// A resumed run drops records of steps after `metrics_step` and `board_step`; -1: a new run.
  /// `folder` must outlive it.
  /// `outputs`: classes; 1: a regression.
  Record(const Options& options, const train::RunFolder& folder, int64_t outputs, int64_t metrics_step,
         int64_t board_step);

  const train::RunFolder& folder() const { return folder_; }
  void trained(TrainerState& state, const TrainLine& line);
  void evaluated(TrainerState& state, const Score& score, double lr, double texts_per_second,
                 int64_t peak_tensor_bytes);
  void finished(const TrainerState& state, const Score& score, const Effort& effort) const;

 private:
  const train::RunFolder& folder_;
  train::Metrics metrics_;
  train::TensorBoard board_;
  /// The names and values of what is known of a score but the loss.
  std::vector<std::pair<std::string, double>> named(const Score& score) const;

  int64_t outputs_;
};

}  // namespace weft::finetune
