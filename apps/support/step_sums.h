// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "apps/support/ranks.h"
#include "apps/support/signals.h"
#include "core/tensor.h"

namespace weft::support {

/// What the steps since the last look added up to, over all ranks. Loss and right answers are summed on the device:
/// reading them each step would make a GPU wait.
class StepSums {
 public:
  struct Totals {
    int64_t images = 0, steps = 0;
    double loss = 0;     ///< summed over the images
    double correct = 0;  ///< images
    double waited = 0;   ///< seconds for data, mean over the ranks
    bool own_loss_is_finite = true;
  };

  StepSums(const Ranks& ranks, Signals& signals);

  /// On the device; may be captured. `loss` is the mean over `images`; `correct` may be left out.
  void add(const Tensor& loss, int64_t images, const Tensor& correct = {}) const;
  /// On the host, once per step.
  void count(int64_t images, double waited);
  int64_t unread_steps() const { return steps_; }
  /// Waits for the device and, on several ranks, for all of them; signals that came to any rank count for all from here
  /// on. All ranks call it behind the same step.
  Totals read();

  /// The signal that asks to stop, "" when none does. On several ranks: as of the last read(), so that all stop behind
  /// the same step.
  std::string stop_signal();
  /// Somebody asked for a checkpoint since the last call, likewise.
  bool take_save_request();

 private:
  const Ranks& ranks_;
  Signals& signals_;
  Tensor loss_sum_, correct_sum_;
  int64_t images_ = 0, steps_ = 0;
  double waited_ = 0;
  std::string stop_signal_;
  bool save_ = false;
};

}  // namespace weft::support
