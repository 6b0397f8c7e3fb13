// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "core/flat_parameters.h"

namespace weft::optim {

struct EmaOptions {
  double decay = 0.999;
  bool warmup =
      false;  ///< the decay of update t (from 0) is at most (1 + t) / (10 + t): early weights are soon forgotten
};

/// The exponential moving average of a model's weights over its steps (Polyak and Juditsky 1992; Tarvainen and Valpola
/// 2017): average = d average + (1 - d) weights after each step; it begins with the initial weights. Floating buffers
/// (running statistics) are averaged likewise, so that they fit the averaged weights. An update takes a launch over the
/// flat weights and a launch per buffer; the count of updates is in device memory, so a captured step can be replayed.
///   Ema ema(adam.flat(), model->buffers(), {.decay = 0.999});
///   for (…) { …; adam.step(); ema.update(); }
///   { const auto averaged = ema.swapped(); evaluate(model); }
/// With FSDP the flat weights are this rank's shards, and so are the averages.
class Ema {
 public:
  /// Errors: no weights; a decay outside [0, 1); parts of a ZeroRedundancyOptimizer.
  Ema(std::shared_ptr<FlatParameters> flat, const std::vector<NamedTensor>& buffers, EmaOptions options);
  Ema(const Ema&) = delete;
  Ema& operator=(const Ema&) = delete;

  /// After each step of the optimizer. Errors: while a swapped() is alive.
  void update();
  /// Updates so far; waits for the device.
  int64_t updates() const;

  /// While it is alive, the model has the averages, and its own weights are kept here. Errors: another one is alive;
  /// meanwhile those of an optimizer's step() and zero_grad().
  class [[nodiscard]] Swapped {
   public:
    explicit Swapped(Ema& ema) : ema_(ema) {
      ema_.check_not_swapped("swapped");
      ema_.swap();
    }
    ~Swapped() { ema_.swap(); }
    Swapped(const Swapped&) = delete;
    Swapped& operator=(const Swapped&) = delete;

   private:
    Ema& ema_;
  };
  Swapped swapped() { return Swapped(*this); }
  /// The averages permanently become the model's weights.
  void adopt();

  /// The averages of the weights as `fc.weight.ema`, in the parameters' sizes, and the count of updates. Shares memory.
  StateDict state_dict() const;
  /// Averages of the buffers, as `bn1.running_mean.ema`.
  StateDict buffers() const;
  /// Errors: missing or unexpected names, wrong shapes; then nothing is changed.
  void load_state_dict(const StateDict& weights, const StateDict& buffers);

 private:
  struct Buffer {
    NamedTensor own;
    Tensor average;
  };
  void swap();
  void check_not_swapped(const char* call) const;
  /// Thawed parameters join the flat weights: their averages begin with their weights, which were constant so far.
  void take_in_new();

  std::shared_ptr<FlatParameters> flat_;
  std::shared_ptr<int> alive_;  // for the call from flat_
  EmaOptions options_;
  Tensor average_, count_, one_;
  std::vector<Buffer> buffers_;
  bool is_swapped_ = false;
};

}  // namespace weft::optim
