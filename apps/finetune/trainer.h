// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "apps/finetune/classifier.h"
#include "apps/finetune/options.h"
#include "apps/finetune/texts.h"
#include "apps/support/metrics.h"
#include "apps/support/parallel.h"
#include "apps/support/run_folder.h"
#include "apps/support/tensorboard.h"
#include "optim/adam.h"
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

  /// All epochs; the score after the last one. All ranks call it.
  Score run();

 private:
  void step(const TextBatch& batch);
  void log();
  void save();
  Score evaluate();
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
  std::unique_ptr<optim::Scheduler> scheduler_;
  std::unique_ptr<support::RunFolder> folder_;  // of rank 0, as what follows
  std::unique_ptr<support::Metrics> metrics_;
  std::unique_ptr<support::TensorBoard> board_;
  int64_t step_ = 0, saved_ = 0;
  int64_t logged_ = 0;            // the step of the last line
  double run_loss_ = 0;           // sum over all steps
  Tensor losses_;                 // sum since the last line
  Tensor gradient_norm_;          // of the last step
  double images_per_second_ = 0;  // texts
};

}  // namespace weft::finetune
