// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

namespace weft::optim {

/// A point on a line: its distance from the start, the loss and its slope along the line.
struct LinePoint {
  double step = 0, loss = 0, slope = 0;
};

struct LineSearchOptions {
  double decrease = 1e-4;   ///< c1: the loss must fall by this share of the decrease that the start's slope predicts
  double curvature = 0.9;   ///< c2: the slope must shrink to this share
  double rounding = 1e-14;  ///< of a loss, as a share of it
  int evaluations = 50;     ///< at most
};

struct LineSearchResult {
  LinePoint point;
  bool found = false;  ///< false: the best point seen, which may be the start itself
  int evaluations = 0;
};

/// A step along a line that satisfies the strong Wolfe conditions: loss <= start.loss + c1 step start.slope and |slope|
/// <= c2 |start.slope| (Nocedal and Wright 2006, algorithms 3.5 and 3.6, cubic interpolation 3.59). Where two losses
/// differ by no more than their rounding, the slopes decide: slope <= (2 c1 - 1) start.slope replaces the first
/// condition (Hager and Zhang 2005, section 3). `start.step` is 0 and `start.slope` below 0; `at(step)` evaluates a
/// point; `first` is tried first. A NaN loss counts as too far. Errors: a start that does not slope downwards, options
/// outside 0 < c1 < c2 < 1.
LineSearchResult strong_wolfe(const LinePoint& start, double first, const std::function<LinePoint(double step)>& at,
                              const LineSearchOptions& options = {});

}  // namespace weft::optim
