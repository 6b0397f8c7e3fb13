// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "apps/jsc/images.h"
#include "optim/optimizers.h"
#include "train/loader_task.h"
#include "train/record/scalar_log.h"

namespace weft::jsc {

/// Trains ResNet-18 from scratch with Adam. Rank 0 prints a line per epoch on stdout, keeps
/// `tb_logs/my_model/version_N`, and writes `image_classification_model.pt` at the end.
class Trainer final : public train::TypedTask<data::Batch> {
 public:
  static constexpr double kLearningRate = 1e-3;
  static constexpr const char* kCheckpoint = "image_classification_model.pt";
  static constexpr const char* kLogs = "tb_logs/my_model";

  /// The objects must outlive it. Errors: a batch larger than a rank's images; no libzip, without which the result
  /// could not be written.
  Trainer(const Options& options, const dist::World& ranks, const Images& images);

  /// `resnet18, 11177538 parameters, 2 classes`.
  std::string describe() const;
  /// All epochs. Errors: a loss that is not finite, the disk's.
  train::RunEnd run();

 private:
  /// Mean loss and share of right answers, over the images of all ranks.
  struct Result {
    double cross_entropy = 0, accuracy = 0;
  };

  train::Measured loss(const data::Batch& batch) override;
  void log_steps(const train::StepSums::Totals&) override;
  train::Validation validate(const train::Epoch& epoch) override;
  void epoch_saved(const train::Epoch& epoch, const train::Validation&) override;
  std::string save() override;
  void stopped(train::StopRule& rule) override;
  void ended(train::RunEnd end) override;
  Result evaluate(data::ImageLoader* loader, const char* what);
  train::HyperParameters hyper_parameters() const;

  const Options& options_;
  const dist::World& ranks_;
  const Images& images_;
  std::unique_ptr<data::ImageLoader> validation_, test_;
  std::shared_ptr<nn::Module> model_;
  std::unique_ptr<train::Strategy> strategy_;
  optim::Adam adam_;
  train::Engine engine_;
  Result validated_;
  std::unique_ptr<train::ScalarLog> log_;  ///< on rank 0
};

}  // namespace weft::jsc
