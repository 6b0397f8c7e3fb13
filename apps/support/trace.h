// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "apps/support/run_reader.h"

namespace weft::support {

struct Point {
  double x = 0, y = 0;
  /// Whether it can be drawn; if not, the line has a gap.
  bool is_gap() const { return !std::isfinite(x) || !std::isfinite(y); }
};

/// One line of a chart.
struct Trace {
  size_t run = 0;                  ///< its number among the runs, which decides the colour
  std::vector<Point> raw, smooth;  ///< `smooth` is empty without smoothing

  const std::vector<Point>& shown() const { return smooth.empty() ? raw : smooth; }
};

/// A metric of all runs with this metric.
struct Chart {
  std::string name;
  std::vector<Trace> traces;
};

/// `x` is step, epoch or time; time counts from `start`, seconds since 1970.
std::vector<Point> points_of(const Curve& curve, const std::string& x, double start);

/// The exponential moving mean s_i = w s_{i-1} + (1 - w) y_i with the start taken out: s_i / (1 - w^i), as Adam does
/// (Kingma and Ba 2015, section 3). Gaps stay gaps and do not change the mean.
std::vector<Point> smoothed(const std::vector<Point>& points, double weight);

/// As many points as `columns` columns can show between x = `low` and `high`: of each column the first, the
/// smallest, the largest and the last, so that no peak is lost. A gap stays where it leaves a column empty.
std::vector<Point> thinned(const std::vector<Point>& points, double low, double high, int columns);

/// The ends of both axes over all traces; the y axis has some room above and below. Empty traces: not `drawable`.
struct Extent {
  double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
  bool drawable = false;
};
/// With `log`, points that are not positive are ignored.
Extent extent_of(const Chart& chart, bool log);

}  // namespace weft::support
