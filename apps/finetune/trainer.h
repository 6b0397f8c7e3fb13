// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "apps/finetune/classifier.h"
#include "apps/finetune/record.h"
#include "apps/support/signals.h"
#include "apps/support/stop_rule.h"
#include "optim/adam.h"
#include "optim/ema.h"
#include "optim/schedule/scheduler.h"

namespace weft::finetune {

/// Trains a classifier of texts; prints lines as Hugging Face's Trainer does.
class Trainer {
 public:
  /// `folder`: of rank 0, null on the others and in a dry run. All that is given must outlive it.
  Trainer(const Options& options, const support::RunFolder* folder, const support::Ranks& ranks,
          const data::WordPiece& pieces, const std::shared_ptr<Classifier>& model, const Texts& train,
          const Texts& dev);

  /// All epochs, or what the checkpoint of --resume-from-checkpoint has left of them. All ranks call it.
  support::RunEnd run();
  /// What run() would do, for --dry-run.
  std::string plan() const;

 private:
  void resume();
  bool must_stop();
  bool train_epoch(int64_t epoch, int64_t first_step);
  void step();
  void log();
  void save();
  double lr() const { return adam_->lr(adam_->groups() - 1); }  // of the classifier
  Score evaluate_all();
  int64_t steps_per_epoch() const;
  int64_t depth() const { return model_->model->options.depth; }
  void finish(double seconds, const Score& score);

  const Options& options_;
  const support::Ranks& ranks_;
  const data::WordPiece& pieces_;
  std::shared_ptr<Classifier> model_;
  const Texts &train_, &dev_;
  TextLoader loader_;
  std::unique_ptr<support::Parallel> parallel_;
  std::unique_ptr<optim::AdamW> adam_;
  std::unique_ptr<optim::Ema> averages_;
  std::unique_ptr<optim::Scheduler> scheduler_;
  std::unique_ptr<Record> record_;  // of rank 0, as what follows; none in a dry run
  std::unique_ptr<support::Progress> progress_;
  TrainerState state_;
  int64_t saved_ = 0;            // step of the last checkpoint
  Tensor losses_;                // sum since the last line, on this rank
  Tensor gradient_norm_;         // of the last step
  double texts_per_second_ = 0;  // on all ranks, over the last epoch's steps alone
  support::Signals signals_;
  support::StepSums sums_;
  support::StopRule stop_;
};

}  // namespace weft::finetune
