// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace weft::support {

struct CurvePoint {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  double step = 0;
  double epoch = kUnknown;
  double time = kUnknown;   ///< seconds since 1970
  double value = kUnknown;  ///< not finite: a gap
};

/// How one number of a run went on, in the order of its steps.
struct Curve {
  std::string name;
  std::vector<CurvePoint> points = {};
  double shift = 0;  ///< steps of earlier phases: what add() counts on from

  /// Adds a point. A step that is not after the last one is made again: a run went on from an earlier checkpoint, or
  /// was started anew, and what stands from there on goes. Unless its epoch is a later one: then the program counts its
  /// steps from 0 in each phase, and they are counted on.
  void add(CurvePoint point);
  /// Takes back the points from this step on.
  void drop_from(double step);

  /// The last point that is not a gap.
  const CurvePoint* last() const;
  /// The (first) smallest or largest.
  const CurvePoint* best(bool smallest) const;
};

/// Whether less of it is better, as far as the name tells: losses, errors, times.
bool less_is_better(const std::string& name);

/// The name among `names` that is meant: itself, or the only one of the same words in another order (`val_loss` is
/// `loss/val`).
std::optional<std::string> find_curve_name(const std::string& name, const std::vector<std::string>& names);

}  // namespace weft::support
