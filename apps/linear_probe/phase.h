// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "apps/linear_probe/options.h"
#include "apps/linear_probe/source.h"
#include "apps/support/metrics.h"
#include "apps/support/parallel.h"
#include "apps/support/run_folder.h"
#include "apps/support/tensorboard.h"
#include "nn/module.h"
#include "optim/adam.h"

namespace weft::linear_probe {

/// What rank 0 writes about a run.
struct Record {
  explicit Record(const Options& options);
  support::RunFolder folder;
  support::Metrics metrics;
  support::TensorBoard board;
};

/// How a phase ended.
struct PhaseResult {
  double accuracy = 0;           ///< share of right answers on the validation part after the last epoch
  double best_accuracy = 0;      ///< after any epoch
  double train_loss = 0;         ///< mean over the last epoch
  double images_per_second = 0;  ///< on all ranks, over the last epoch's training
};

/// Some epochs of one model with a fresh Adam, validation behind each.
class Phase {
 public:
  /// `record`: null but on rank 0. `first_epoch`: how many epochs earlier phases had, for the metrics.
  Phase(const Options& options, const support::Ranks& ranks, Record* record, int64_t first_epoch)
      : options_(options), ranks_(ranks), record_(record), first_epoch_(first_epoch) {}

  /// Trains `parallel`, whose module is `model`, at `lr`; prints the lines of the workflow. All ranks call it.
  PhaseResult run(support::Parallel& parallel, nn::Module& model, double lr, Source& training, Source& validation);

 private:
  Tensor forward(support::Parallel& parallel, const Tensor& input) const;
  double train_epoch(support::Parallel& parallel, optim::Adam& adam, Source& training, int64_t epoch);
  double validate(support::Parallel& parallel, nn::Module& model, Source& validation) const;
  void report(int64_t epoch, double lr, double loss, double accuracy, double images_per_second);

  const Options& options_;
  const support::Ranks& ranks_;
  Record* record_;
  int64_t first_epoch_, step_ = 0;
  Tensor like_;  ///< an input, for the steps of ranks that have none
  int64_t trained_images_ = 0;
};

}  // namespace weft::linear_probe
