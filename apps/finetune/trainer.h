// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "apps/finetune/configuration.h"
#include "apps/finetune/evaluation.h"
#include "apps/finetune/tokenizer_files.h"
#include "apps/finetune/trainer_state.h"
#include "nn/models/bert.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "train/loader_task.h"
#include "train/record/metrics.h"
#include "train/record/run_folder.h"
#include "train/record/stopwatch.h"
#include "train/record/tensorboard.h"

namespace weft::finetune {

/// Bert as a function of one tensor, which data parallelism needs: input [N, 3, tokens] of TextLoader to logits [N,
/// classes].
struct Classifier : nn::Bert {
  using Bert::Bert;
  Tensor forward(const Tensor& x) const override;
};

/// Trains a classifier of texts; prints lines as Hugging Face's Trainer does, which go into the state's history, too.
class Trainer final : public train::TypedTask<TextBatch> {
 public:
  /// `folder`: of rank 0, null on the others and in a dry run. All that is given must outlive it.
  Trainer(const Options& options, const train::RunFolder* folder, const dist::World& world, const Tokenizer& tokenizer,
          const SavedConfiguration& saved, const std::shared_ptr<Classifier>& model, const Texts& train,
          const Texts& dev);

  /// All epochs, or what the checkpoint of --resume-from-checkpoint has left of them. All ranks call it.
  train::RunEnd run();
  /// The plan of run(), for --dry-run.
  std::string plan() const;

 private:
  train::Measured loss(const TextBatch& batch) override;
  void after_step() override;
  void log_steps(const train::StepSums::Totals& totals) override;
  train::Validation validate(const train::Epoch& epoch) override;
  std::string save() override;
  void stopped(train::StopRule& rule) override;
  void ended(train::RunEnd end) override;
  void resume();
  void check_settings(const std::filesystem::path& checkpoint) const;
  void print_training(double loss, double gradient_norm);
  void print_evaluation();
  void print_end();
  /// The names and values of what is known of the last score but the loss.
  std::vector<std::pair<std::string, double>> scores() const;
  double lr() const { return adam_->lr(adam_->groups() - 1); }  // the classifier's

  const Options& options_;
  const train::RunFolder* folder_;
  const dist::World& world_;
  const Tokenizer& tokenizer_;
  const SavedConfiguration& saved_configuration_;
  std::shared_ptr<Classifier> model_;
  const Texts &train_, &dev_;
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<optim::AdamW> adam_;
  std::unique_ptr<optim::Ema> averages_;
  train::Engine engine_;
  TrainerState state_;
  optim::Scheduler scheduler_;
  std::optional<train::Metrics> metrics_;  // as the next: where there is a folder
  std::optional<train::TensorBoard> board_;
  Score score_;
  train::Stopwatch watch_;       // since run() began
  int64_t saved_ = 0;            // step of the last checkpoint
  double lr_of_step_ = 0;        // rate of the last step, which the Trainer prints
  double texts_per_second_ = 0;  // on all ranks, over the last epoch's steps alone
};

}  // namespace weft::finetune
