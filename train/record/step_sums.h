// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "core/tensor.h"
#include "dist/group/world.h"
#include "train/signals.h"

namespace weft::train {

/// How the losses of several steps become one number.
enum class LossSum {
  per_sample,  ///< each step counts by its samples
  per_step,    ///< each step of each rank counts equally
};

/// The sums over the steps since the last read, over all ranks. Losses and right answers are summed on the device:
/// reading them each step would make a GPU wait. A resumed run reads at other steps than an undisturbed run. So losses
/// are summed in f64. Sums of f32 are exact there in any grouping below 2^29 samples an epoch per ratio of largest to
/// smallest loss.
class StepSums {
 public:
  struct Totals {
    int64_t samples = 0, steps = 0;
    double loss = 0;      ///< summed as LossSum says
    double own_loss = 0;  ///< sum of this rank alone
    double correct = 0;   ///< samples
    double own_correct = 0;
    int64_t own_samples = 0;
    double waited = 0;  ///< seconds for data, mean over the ranks
    bool own_loss_is_finite = true;
    bool gradients_are_finite = true, own_gradient_is_finite = true;  ///< as count_gradient() says
  };

  StepSums(const dist::World& world, Signals& signals, LossSum kind = LossSum::per_sample);

  /// On the device; may be captured. `loss` is the mean over `samples`; `correct` may be left out.
  void add(const Tensor& loss, int64_t samples, const Tensor& correct = {}) const;
  /// On the host, once per step.
  void count(int64_t samples, double waited);
  /// Whether this rank's gradient of the step under way is finite.
  void count_gradient(bool finite) { gradient_is_finite_ = finite; }
  int64_t unread_steps() const { return steps_; }
  /// Waits for the device and, on several ranks, for all of them; a signal to any rank counts for all from here on. All
  /// ranks call it after the same step.
  Totals read();

  /// The signal that asks to stop, "" when none does. On several ranks: as of the last read(), so that all stop after
  /// the same step.
  std::string stop_signal();
  /// Whether any rank requested a checkpoint since the last call.
  bool take_save_request();

 private:
  const dist::World& world_;
  Signals& signals_;
  LossSum kind_;
  Tensor loss_sum_, correct_sum_;
  int64_t samples_ = 0, steps_ = 0;
  double waited_ = 0;
  std::string stop_signal_;
  bool save_ = false;
  bool gradient_is_finite_ = true;
};

}  // namespace weft::train
