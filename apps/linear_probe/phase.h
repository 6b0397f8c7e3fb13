// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "apps/linear_probe/options.h"
#include "apps/linear_probe/session.h"
#include "apps/linear_probe/source.h"
#include "apps/support/parallel.h"
#include "apps/support/progress.h"
#include "nn/module.h"
#include "optim/adam.h"
#include "optim/ema.h"

namespace weft::linear_probe {

/// What a phase trains, and how.
struct PhaseOptions {
  double lr = 1e-3;
  double layer_decay = 1;    ///< see optim/layer_decay.h; 1: one rate
  std::string saved_prefix;  ///< a checkpoint has the weights whose names begin so: those that the phase changes
};

/// Some epochs of one model with a fresh Adam, or what the session's checkpoint has left of them; validation behind
/// each.
class Phase {
 public:
  /// Trains `parallel`, whose module is `model`. All ranks make it.
  Phase(const Options& options, const support::Ranks& ranks, Session& session, support::Parallel& parallel,
        nn::Module& model, PhaseOptions how);

  /// Prints the lines of the workflow; the result is in the session's position. False: the run is to stop, and its
  /// checkpoint is written. All ranks call it.
  bool run(Source& training, Source& validation);

 private:
  Tensor forward(const Tensor& input) const;
  bool train_epoch(Source& training);
  int64_t train_step(Source& training, int64_t first);
  void read_sums();
  double validate(Source& validation) const;
  void finish_epoch(double accuracy, double images_per_second);
  void save() { session_.save(parallel_, *adam_, averages_.get(), how_.saved_prefix); }

  const Options& options_;
  const support::Ranks& ranks_;
  Session& session_;
  support::Parallel& parallel_;
  nn::Module& model_;
  PhaseOptions how_;
  std::unique_ptr<optim::AdamW> adam_;
  std::unique_ptr<optim::Ema> averages_;
  std::unique_ptr<support::Progress> progress_;  // of rank 0
};

}  // namespace weft::linear_probe
