// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "apps/jsc/pictures.h"
#include "apps/support/parallel.h"
#include "apps/support/progress.h"
#include "apps/support/scalar_log.h"
#include "core/graph.h"
#include "optim/adam.h"

namespace weft::jsc {

/// Trains ResNet-18 from scratch with Adam. Rank 0 prints a line per epoch on stdout, keeps
/// `tb_logs/my_model/version_N`, and writes `image_classification_model.pt` at the end.
class Trainer {
 public:
  static constexpr double kLearningRate = 1e-3;
  static constexpr const char* kCheckpoint = "image_classification_model.pt";
  static constexpr const char* kLogs = "tb_logs/my_model";

  /// The objects must outlive it. Errors: a batch larger than a rank's pictures; no libzip, without which the result
  /// could not be written.
  Trainer(const Options& options, const support::Ranks& ranks, const Pictures& pictures);

  /// `resnet18, 11177538 parameters, 2 classes`.
  std::string describe() const;
  /// All epochs. Errors: a loss that is not finite, the disk's.
  void run();

 private:
  /// Mean loss and share of right answers, over the pictures of all ranks.
  struct Result {
    double cross_entropy = 0, accuracy = 0;
  };
  /// What steps add up on the device: reading it each step would make a GPU wait.
  struct Sums {
    Tensor loss, correct;
    int64_t images = 0;

    void clear();
  };

  Result train_epoch(int64_t epoch);
  Result evaluate(data::Loader* loader, const char* what);
  void train_step(const data::Batch& batch);
  void update(const Tensor& images, const Tensor& labels);
  void add(const Tensor& logits, const Tensor& loss, const Tensor& labels);
  Result of_all_ranks(double loss, double correct, int64_t images, const char* what) const;
  void log_step(const Result& result);
  void log_epoch(int64_t epoch, const Result& train, const Result& val);
  void save();
  support::HyperParameters hyper_parameters() const;

  const Options& options_;
  const support::Ranks& ranks_;
  const Pictures& pictures_;
  std::unique_ptr<data::Loader> training_, validation_, test_;
  std::shared_ptr<nn::Module> model_;
  std::unique_ptr<support::Parallel> parallel_;
  optim::Adam adam_;
  std::unique_ptr<GraphedFunction> graph_;  ///< update() on a GPU: a step of one picture is many small kernels
  Sums sums_;
  int64_t steps_ = 0;
  std::unique_ptr<support::ScalarLog> log_;                  ///< of rank 0
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere_;  ///< of the other ranks' progress
  support::Progress progress_;
};

}  // namespace weft::jsc
