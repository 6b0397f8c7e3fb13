// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/early_stop.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace weft::weft_sweep {

EarlyStop::EarlyStop(const Sweep& sweep) : sweep_(sweep) {}
EarlyStop::~EarlyStop() = default;

const support::Curve* EarlyStop::curve(size_t point) {
  const auto find = [&](support::RunReader& reader) {
    reader.refresh();
    const auto name = support::find_curve_name(sweep_.metric, reader.names());
    return name ? reader.find(*name) : nullptr;
  };
  Run& run = runs_[point];
  if (run.reader != nullptr) return find(*run.reader);
  const std::filesystem::path folder = sweep_.folder_of(sweep_.points[point]);
  std::error_code ignored;
  if (!std::filesystem::exists(folder, ignored)) return nullptr;
  for (const std::filesystem::path& path : support::find_runs(folder)) {
    auto reader = std::make_unique<support::RunReader>(path);
    if (find(*reader) == nullptr) continue;
    run.reader = std::move(reader);
    return find(*run.reader);
  }
  return nullptr;
}

/// The value that counts after `count` values, smaller being better: the last or the best. Infinite: not a number.
std::optional<double> EarlyStop::value_after(size_t point, int64_t count) {
  const support::Curve* c = curve(point);
  if (c == nullptr || static_cast<int64_t>(c->points.size()) < count) return std::nullopt;
  const auto badness = [&](const support::CurvePoint& p) {
    return !std::isfinite(p.value) ? std::numeric_limits<double>::infinity() : sweep_.smaller_wins ? p.value : -p.value;
  };
  const auto last = c->points.begin() + count - 1;
  if (!sweep_.by_best) return badness(*last);
  double best = badness(*last);
  for (auto p = c->points.begin(); p != last; ++p) best = std::min(best, badness(*p));
  return best;
}

bool EarlyStop::loses(size_t point) {
  int64_t& next = runs_[point].next;
  if (next == 0) next = sweep_.halving->min_iter;
  const int64_t end = sweep_.halving->max_iter;
  while (end == 0 || next < end) {
    const std::optional<double> own = value_after(point, next);
    if (!own) return false;
    int64_t came = 0, better = 0;
    for (size_t i = 0; i < sweep_.points.size(); ++i) {
      const std::optional<double> other = i == point ? own : value_after(i, next);
      came += other.has_value();
      better += other.has_value() && *other < *own;
    }
    if (better >= std::max<int64_t>(1, came / sweep_.halving->eta)) return true;
    if (__builtin_mul_overflow(next, sweep_.halving->eta, &next)) next = std::numeric_limits<int64_t>::max();
  }
  return false;
}

}  // namespace weft::weft_sweep
