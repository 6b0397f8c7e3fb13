// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "apps/finetune/classifier.h"
#include "apps/finetune/options.h"
#include "apps/finetune/texts.h"
#include "apps/finetune/trainer_state.h"
#include "apps/support/metrics.h"
#include "apps/support/parallel.h"
#include "apps/support/run_folder.h"
#include "apps/support/signals.h"
#include "apps/support/stop_rule.h"
#include "apps/support/tensorboard.h"
#include "optim/adam.h"
#include "optim/ema.h"
#include "optim/schedule/scheduler.h"

namespace weft::finetune {

/// Over the whole dev part.
struct Score {
  double loss = 0, accuracy = 0;
  double f1 = 0;  ///< of class 1, where there are two classes: 2 P R / (P + R)
};

/// Trains a classifier of texts; prints lines as Hugging Face's Trainer does.
class Trainer {
 public:
  Trainer(const Options& options, const support::Ranks& ranks, const data::WordPiece& pieces,
          const std::shared_ptr<Classifier>& model, const Texts& train, const Texts& dev);

  /// All epochs, or what the checkpoint of --resume-from-checkpoint has left of them. All ranks call it.
  support::RunEnd run();

 private:
  void resume();
  bool must_stop();
  bool train_epoch(int64_t epoch, int64_t first_step);
  void step();
  void log();
  void save();
  double lr() const { return adam_->lr(adam_->groups() - 1); }  // of the classifier
  void note(const nlohmann::ordered_json& line);
  Score evaluate();
  int64_t steps_per_epoch() const;
  int64_t depth() const { return model_->model->options.depth; }
  double epoch() const;
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
  std::unique_ptr<support::RunFolder> folder_;  // of rank 0, as what follows
  std::unique_ptr<support::Metrics> metrics_;
  std::unique_ptr<support::TensorBoard> board_;
  TrainerState state_;
  int64_t saved_ = 0, started_ = 0;  // steps: of the last checkpoint; before this process
  Tensor losses_;                    // sum since the last line, on this rank
  Tensor gradient_norm_;             // of the last step
  double images_per_second_ = 0;     // texts
  support::Signals signals_;
  support::StepSums sums_;
  support::StopRule stop_;
};

}  // namespace weft::finetune
