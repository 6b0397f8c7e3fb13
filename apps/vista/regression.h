// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "nn/linear.h"
#include "optim/optimizers.h"
#include "train/loader_task.h"
#include "train/record/scalar_log.h"
#include "train/run_options.h"

namespace weft::vista {

/// The arguments and flags of single_gpu and multinode; see options.cpp for what `--help` says about them.
struct Options : train::RunOptions {
  Options() { batch_size = 32, seed = 0; }
  int64_t total_epochs = 0;
  int64_t save_every = 0;
  std::string loss = "mse";
  std::string log_dir;  ///< '': no metrics are kept
};

/// Reads the command line and --config. `multinode`: flags that only several ranks need. False: --help was printed.
/// Errors: UsageError, see support::Flags.
bool parse_options(const std::string& program, int argc, char** argv, Options& options);

/// 2048 pairs of x [20] and y [1], uniform in [0, 1), the same for one seed on every rank; they lie on the device. Each
/// rank takes its share of an epoch.
std::shared_ptr<data::BatchQueue> make_pairs(const Options& options, const dist::World& world);

/// Linear(20, 1), on the device.
std::shared_ptr<nn::Linear> make_model(const Options& options, Device device);

/// `Linear(20, 1) on cpu (…), 50 epochs of 64 steps, …`, for --dry-run.
std::string describe(const Options& options, const data::BatchQueue& pairs, Device device);

struct Pairs {
  Tensor x, y;  ///< [count, 20], [count, 1]
  void fields(auto& v) { v("x", x), v("y", y); }
};

/// The regression by SGD, from the start or from `resumed_epoch` on (-1: a new run). The programs differ in the files
/// that they write, and when. --log-dir keeps `train_loss` and `pairs_per_second` by the number of epochs that have
/// been run.
class Regression : public train::TypedTask<Pairs> {
 public:
  /// All must outlive it.
  Regression(const Options& options, const dist::World& world, std::shared_ptr<data::BatchQueue> pairs,
             std::shared_ptr<nn::Module> model, train::Strategy& strategy, int64_t resumed_epoch = -1);
  train::RunEnd run() { return engine_.run(); }

 protected:
  /// `[GPU0] Epoch 3 | Batchsize: 32 | Steps: 64`.
  void print_epoch(int gpu) const;
  train::Measured loss(const Pairs& batch) override;
  void epoch_done(const train::Epoch& epoch, const train::Validation&) override;
  void stopped(train::StopRule& rule) override;
  void ended(train::RunEnd end) override;
  int64_t epoch() const { return engine_.position().epoch; }

  const Options& options_;
  const dist::World& world_;
  std::shared_ptr<nn::Module> model_;

 private:
  optim::SGD sgd_;
  train::Engine engine_;
  std::optional<train::ScalarLog> log_;  // on rank 0
  int64_t first_epoch_;
};

}  // namespace weft::vista
