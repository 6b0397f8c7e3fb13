// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "optim/schedule.h"

namespace weft::nersc_vit {

/// lr = base min((step + 1) / warmup, (1 + cos(pi step / steps)) / 2); without warm-up the cosine alone.
class WarmedCosine : public optim::Schedule {
 public:
  WarmedCosine(int64_t steps, int64_t warmup) : cosine_(steps), warmup_(warmup) {}
  double lr(int64_t step, double base) const override {
    const double falling = cosine_.lr(step, base);
    if (warmup_ == 0) return falling;
    return std::min(base * static_cast<double>(step + 1) / static_cast<double>(warmup_), falling);
  }

 private:
  optim::CosineSchedule cosine_;
  int64_t warmup_;
};

}  // namespace weft::nersc_vit
