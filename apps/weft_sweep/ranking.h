// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "apps/support/run_reader.h"
#include "apps/weft_sweep/sweep.h"

namespace weft::weft_sweep {

/// The points of a sweep: the best first, then points that were stopped early, then points without a value.
struct Ranking {
  struct Entry {
    size_t point = 0;
    PointResult result;
    std::optional<double> last, best;  ///< values of the metric; `last` of a run that diverged is NaN
    double best_step = 0;
    std::vector<support::CurvePoint> curve;  ///< all values of the metric
    std::string why;                         ///< why it has no value; for a failed run the last line of its log
  };
  std::vector<Entry> entries;

  explicit Ranking(const Sweep& sweep);

  /// The value that ranks the point; nothing if not a number.
  static std::optional<double> value(const Sweep& sweep, const Entry& entry) {
    const std::optional<double>& number = sweep.by_best ? entry.best : entry.last;
    return number && std::isfinite(*number) ? number : std::nullopt;
  }
  static const char* state(const Entry& entry);  ///< `done`, `stopped early`, …

  size_t count(PointResult::State state) const;
  size_t without_value() const;  ///< count among the finished points
  /// The ranking as a table of text.
  std::string text(const Sweep& sweep) const;
  /// FOLDER/ranking.json.
  void save(const Sweep& sweep) const;
};

/// A sweep as one HTML page in the manner of weft-watch's (nothing loaded, no script): the curves of its best runs, the
/// best value after each point, the metric over each varying parameter, the ranking with links to logs.
std::string results_page(const Sweep& sweep, const Ranking& ranking);

}  // namespace weft::weft_sweep
