// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/schedule/schedule.h"

namespace weft::optim {

/// lr = end + (base - end) (1 + cos(pi step / steps)) / 2 (Loshchilov and Hutter 2017). After `steps` it rises again,
/// as in PyTorch.
class CosineSchedule : public Schedule {
 public:
  /// Errors: steps below 1.
  explicit CosineSchedule(int64_t steps, double end = 0);
  double lr(int64_t step, double base) const override;

 private:
  int64_t steps_;
  double end_;
};

/// A cosine that begins again at the base rate after `steps` steps, then after `factor` times as many each time
/// (Loshchilov and Hutter 2017; PyTorch's CosineAnnealingWarmRestarts).
class CosineRestarts : public Schedule {
 public:
  /// Errors: steps or factor below 1.
  explicit CosineRestarts(int64_t steps, int64_t factor = 1, double end = 0);
  double lr(int64_t step, double base) const override;

 private:
  int64_t steps_, factor_;
  double end_;
};

}  // namespace weft::optim
