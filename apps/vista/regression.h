// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "apps/support/scalar_log.h"
#include "apps/vista/options.h"
#include "data/sampler.h"
#include "nn/linear.h"
#include "optim/sgd.h"

namespace weft::vista {

/// 2048 pairs of x [20] and y [1], uniform in [0, 1), the same for one seed on every rank; they lie on the device.
class Pairs {
 public:
  /// `rank` of `world` takes its share of each epoch, in batches of `batch_size`.
  Pairs(const Options& options, Device device, int rank = 0, int world = 1);

  struct Batch {
    Tensor x, y;  ///< [n, 20], [n, 1]
  };
  /// Steps of an epoch on this rank.
  int64_t steps() const;
  /// Pairs in the first step of an epoch.
  int64_t first_batch() const;
  Batch batch(int64_t epoch, int64_t step) const;

 private:
  Tensor x_, y_;
  data::Sampler sampler_;
  int64_t batch_size_;
};

/// Linear(20, 1), on the device.
std::shared_ptr<nn::Linear> make_model(const Options& options, Device device);

/// `[GPU0] Epoch 3 | Batchsize: 32 | Steps: 64`.
void print_epoch(int gpu, int64_t epoch, const Pairs& pairs);

/// One pass over this rank's pairs; returns the mean of the steps' losses.
double train_epoch(const Options& options, const Pairs& pairs, int64_t epoch,
                   const std::function<Tensor(const Tensor&)>& forward, optim::SGD& sgd);

/// What --log-dir keeps: `train_loss` and `pairs_per_second` by the number of epochs that have been run. Of rank 0.
class LossLog {
 public:
  /// `resumed_epoch` (-1: a new run): later epochs of an earlier run of this folder go.
  LossLog(const Options& options, int ranks, int64_t resumed_epoch);
  void log(int64_t epochs_run, double loss, double seconds);
  void end() { log_.end(true); }

 private:
  support::ScalarLog log_;
};

/// `Linear(20, 1) on cpu (…), 50 epochs of 64 steps, …`, for --dry-run.
std::string describe(const Options& options, const Pairs& pairs, Device device);

}  // namespace weft::vista
