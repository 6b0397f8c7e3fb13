// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "apps/ml_dist/net.h"
#include "apps/ml_dist/options.h"
#include "apps/support/ranks.h"
#include "apps/support/run_folder.h"
#include "apps/support/scalar_log.h"
#include "data/loader.h"
#include "dist/ddp.h"
#include "dist/distributed_optimizer.h"
#include "optim/adadelta.h"
#include "optim/schedule/scheduler.h"

namespace weft::ml_dist {

/// Trains and tests, epoch by epoch, and prints as the workflow's three programs do.
class Trainer {
 public:
  /// Errors: files that are missing or wrong.
  Trainer(const Options& options, Mode mode, const support::Ranks& ranks);
  void run();

 private:
  std::unique_ptr<data::Loader> make_loader(data::Split split) const;
  void train(int64_t epoch);
  void update(const Tensor& loss);
  void print_train(int64_t epoch, const data::Batch& batch, double loss) const;
  void test(int64_t epoch);
  support::HyperParameters hyper_parameters() const;
  void open_output();
  void save() const;

  const Options& options_;
  Mode mode_;
  const support::Ranks& ranks_;
  std::shared_ptr<const data::Dataset> train_set_, test_set_;
  std::unique_ptr<data::Loader> train_loader_, test_loader_;
  std::shared_ptr<Net> model_;
  std::unique_ptr<dist::DDP> ddp_;  // of mode ddp
  std::unique_ptr<optim::Adadelta> adadelta_;
  std::unique_ptr<dist::DistributedOptimizer> distributed_;  // of mode mpi
  std::unique_ptr<optim::Scheduler> scheduler_;
  std::unique_ptr<support::RunFolder> output_;  // of rank 0, with --save-model
  std::unique_ptr<support::ScalarLog> log_;     // of rank 0, with --log-dir
  int64_t steps_ = 0;
  double images_per_second_ = 0;  // on all ranks, over the last epoch's training
};

}  // namespace weft::ml_dist
