// SPDX-License-Identifier: Apache-2.0
#include "optim/line_search.h"

#include <algorithm>
#include <cmath>

#include "kernels/error.h"

namespace weft::optim {
namespace {

/// The minimum of the cubic through two points and their slopes; NaN if it has none.
double cubic_minimum(const LinePoint& a, const LinePoint& b) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step);
  const double d2 = std::copysign(std::sqrt(d1 * d1 - a.slope * b.slope), b.step - a.step);
  return b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
}

/// A running search: the conditions, and the evaluations left.
class Search {
 public:
  Search(const LinePoint& start, const std::function<LinePoint(double)>& at, const LineSearchOptions& options)
      : start_(start), at_(at), options_(options), best_(start) {}

  LineSearchResult run(double first) {
    LinePoint previous = start_;
    double step = first;
    while (evaluations_ < options_.evaluations) {
      const LinePoint point = evaluate(step);
      if (too_high(point) || !not_above(point, previous)) return zoom(previous, point);
      if (flat_enough(point)) return {point, true, evaluations_};
      if (point.slope >= 0) return zoom(point, previous);
      const double guess = cubic_minimum(previous, point);
      previous = point;
      step = guess > 2 * point.step && guess < 10 * point.step ? guess : 2 * point.step;
    }
    return give_up();
  }

 private:
  LinePoint evaluate(double step) {
    ++evaluations_;
    const LinePoint point = at_(step);
    if (point.loss < best_.loss) best_ = point;
    return point;
  }
  bool too_high(const LinePoint& point) const {
    if (!std::isfinite(point.slope)) return true;
    if (point.loss <= start_.loss + options_.decrease * point.step * start_.slope) return false;
    return std::abs(point.loss - start_.loss) > rounding(point, start_) ||
           point.slope > (2 * options_.decrease - 1) * start_.slope;
  }
  double rounding(const LinePoint& a, const LinePoint& b) const {
    return options_.rounding * std::max(std::abs(a.loss), std::abs(b.loss));
  }
  /// Compares with the precision that rounded losses have.
  bool not_above(const LinePoint& point, const LinePoint& than) const {
    return point.loss <= than.loss + rounding(point, than);
  }
  bool flat_enough(const LinePoint& point) const { return std::abs(point.slope) <= -options_.curvature * start_.slope; }
  LineSearchResult give_up() const { return {best_, false, evaluations_}; }

  /// A point between `low`, the best point that decreases enough, and `high` satisfies both conditions.
  LineSearchResult zoom(LinePoint low, LinePoint high) {
    while (evaluations_ < options_.evaluations) {
      const double width = high.step - low.step;
      if (std::abs(width) <= 1e-12 * std::max(low.step, high.step)) break;
      const double share = (cubic_minimum(low, high) - low.step) / width;
      // Bisect if the point is too near to an end, if the bracket hardly shrinks, or if there is no minimum.
      const LinePoint point = evaluate(low.step + width * (share > 0.1 && share < 0.9 ? share : 0.5));
      if (too_high(point) || !not_above(point, low)) {
        high = point;
        continue;
      }
      if (flat_enough(point)) return {point, true, evaluations_};
      if (point.slope * width >= 0) high = low;
      low = point;
    }
    return give_up();
  }

  const LinePoint& start_;
  const std::function<LinePoint(double)>& at_;
  const LineSearchOptions& options_;
  LinePoint best_;
  int evaluations_ = 0;
};

}  // namespace

LineSearchResult strong_wolfe(const LinePoint& start, double first, const std::function<LinePoint(double step)>& at,
                              const LineSearchOptions& options) {
  WEFT_CHECK(start.slope < 0, "line search: expected a slope below 0, got ", start.slope);
  WEFT_CHECK(first > 0, "line search: expected a first step above 0, got ", first);
  WEFT_CHECK(options.decrease > 0 && options.decrease < options.curvature && options.curvature < 1,
             "line search: expected 0 < decrease < curvature < 1, got ", options.decrease, " and ", options.curvature);
  return Search(start, at, options).run(first);
}

}  // namespace weft::optim
