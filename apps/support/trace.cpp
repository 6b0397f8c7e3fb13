// SPDX-License-Identifier: Apache-2.0
#include "apps/support/trace.h"

#include <algorithm>
#include <array>

namespace weft::support {
namespace {

/// The points to keep of those that share a column and are no gaps.
void append_extremes(const std::vector<Point>& column, std::vector<Point>& out) {
  if (column.empty()) return;
  const auto [least, most] =
      std::minmax_element(column.begin(), column.end(), [](auto& a, auto& b) { return a.y < b.y; });
  std::array kept{column.begin(), std::min(least, most), std::max(least, most), column.end() - 1};
  const auto last = std::unique(kept.begin(), kept.end());
  for (auto at = kept.begin(); at != last; ++at) out.push_back(**at);
}

}  // namespace

std::vector<Point> points_of(const Curve& curve, const std::string& x, double start) {
  std::vector<Point> out;
  out.reserve(curve.points.size());
  for (const CurvePoint& p : curve.points)
    out.push_back({x == "epoch" ? p.epoch : x == "time" ? p.time - start : p.step, p.value});
  return out;
}

std::vector<Point> smoothed(const std::vector<Point>& points, double weight) {
  std::vector<Point> out = points;
  double mean = 0, share = 1;  // share: weight of the start, which is 0
  for (Point& p : out) {
    if (p.is_gap()) continue;
    mean = weight * mean + (1 - weight) * p.y;
    share *= weight;
    p.y = mean / (1 - share);
  }
  return out;
}

std::vector<Point> thinned(const std::vector<Point>& points, double low, double high, int columns) {
  if (columns < 1 || !(high > low) || points.size() <= static_cast<size_t>(columns)) return points;
  const auto column_of = [&](const Point& p) { return std::floor((p.x - low) / (high - low) * columns); };
  std::vector<Point> out, column;
  Point gap;
  bool after_gap = false;
  for (const Point& p : points) {
    if (p.is_gap()) {
      gap = p;
      after_gap = true;
      continue;
    }
    if (!column.empty() && column_of(p) != column_of(column.back())) {
      const bool wide = column_of(p) > column_of(column.back()) + 1;
      append_extremes(column, out);
      if (after_gap && wide) out.push_back(gap);
      column.clear();
    }
    column.push_back(p);
    after_gap = false;
  }
  append_extremes(column, out);
  return out;
}

Extent extent_of(const Chart& chart, bool log) {
  Extent e;
  for (const Trace& trace : chart.traces)
    for (const Point& p : trace.shown()) {
      if (p.is_gap() || (log && p.y <= 0)) continue;
      if (!e.drawable) e = {p.x, p.x, p.y, p.y, true};
      e.x_low = std::min(e.x_low, p.x), e.x_high = std::max(e.x_high, p.x);
      e.y_low = std::min(e.y_low, p.y), e.y_high = std::max(e.y_high, p.y);
    }
  return e;
}

}  // namespace weft::support
