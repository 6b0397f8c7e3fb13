// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "apps/ml_dist/options.h"
#include "data/image_loader.h"
#include "nn/conv.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "train/loader_task.h"
#include "train/record/run_folder.h"
#include "train/record/scalar_log.h"

namespace weft::ml_dist {

/// The network of PyTorch's MNIST example: two 3x3 convolutions, a pool, two linear layers, dropout; 1,199,882
/// parameters under that example's names. x [N, 28, 28, 1] to log probabilities [N, 10].
struct Net : nn::Module {
  nn::Conv2d conv1{1, 32, {3, 3}}, conv2{32, 64, {3, 3}};
  nn::Dropout dropout1{0.25}, dropout2{0.5};
  nn::Flatten flatten;
  nn::Linear fc1{9216, 128}, fc2{128, 10};

  Tensor forward(const Tensor& x) const override;
  void fields(nn::Visitor& v) override;
};

struct Sets {
  /// Errors: files that are missing or wrong.
  explicit Sets(const Options& options);
  std::shared_ptr<const data::Dataset> train, test;
};

/// Trains and tests, epoch by epoch, and prints as the workflow's three programs do.
class Trainer final : public train::TypedTask<data::Batch> {
 public:
  Trainer(const Options& options, Mode mode, const dist::World& ranks, const Sets& sets);
  train::RunEnd run();

 private:
  int64_t samples() const override { return options_.dry_run ? batch_size() : LoaderTask::samples(); }
  void start_epoch(int64_t epoch, int64_t batch) override { LoaderTask::start_epoch(epoch + 1, batch); }
  train::Measured loss(const data::Batch& batch) override;
  void after_step() override;
  train::Validation validate(const train::Epoch& epoch) override;
  void epoch_saved(const train::Epoch&, const train::Validation&) override { scheduler_->step(); }
  std::string save() override;
  void stopped(train::StopRule& rule) override;
  void ended(train::RunEnd end) override;

  train::HyperParameters hyper_parameters() const;
  void open_output();

  const Options& options_;
  Mode mode_;
  const dist::World& ranks_;
  const Sets& sets_;
  std::unique_ptr<data::ImageLoader> test_loader_;
  std::shared_ptr<Net> model_;
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<optim::Adadelta> adadelta_;
  std::unique_ptr<optim::Scheduler> scheduler_;
  std::unique_ptr<train::RunFolder> output_;  // on rank 0, with --save-model
  std::unique_ptr<train::ScalarLog> log_;     // on rank 0, with --log-dir
  std::unique_ptr<train::Engine> engine_;
};

}  // namespace weft::ml_dist
