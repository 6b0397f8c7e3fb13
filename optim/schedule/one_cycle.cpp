// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule/one_cycle.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/error.h"

namespace weft::optim {
namespace {

struct Phase {
  double end;  // step of its end
  double from, to;
};

}  // namespace

OneCycleSchedule::OneCycleSchedule(OneCycleOptions options) : options_(options) {
  WEFT_CHECK(options.steps >= 1, "OneCycleSchedule: expected at least 1 step, got ", options.steps);
  WEFT_CHECK(options.rise >= 0 && options.rise <= 1, "OneCycleSchedule: expected a rise in [0, 1], got ", options.rise);
}

double OneCycleSchedule::lr(int64_t step, double) const {
  WEFT_CHECK(step >= 0 && step < options_.steps, "OneCycleSchedule: the cycle has ", options_.steps,
             " steps, asked for step ", step);
  const double steps = static_cast<double>(options_.steps);
  const double peak = options_.rise * steps - 1;
  const double start = options_.max_lr / options_.start_divisor;
  const double end = start / options_.end_divisor;
  std::vector<Phase> phases{{peak, start, options_.max_lr}};
  if (options_.three_phase) phases.push_back({2 * peak, options_.max_lr, start});
  phases.push_back({steps - 1, options_.three_phase ? start : options_.max_lr, end});

  double begin = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const auto [phase_end, from, to] = phases[i];
    if (static_cast<double>(step) <= phase_end || i + 1 == phases.size()) {
      const double length = phase_end - begin;
      const double done = length > 0 ? (static_cast<double>(step) - begin) / length : 1;
      if (options_.linear) return from + (to - from) * done;
      return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * done));
    }
    begin = phase_end;
  }
  return end;
}

}  // namespace weft::optim
