// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace weft::support {

/// Numbers along one side of a chart.
class Axis {
 public:
  enum class Scale { linear, log, clock };  ///< clock: linear, in seconds, with labels such as 1:30

  /// From `low` to `high`, with about `ticks` ticks at round numbers; a range of no width is widened. On a log scale
  /// both must be positive.
  Axis(double low, double high, Scale scale, int ticks);

  struct Tick {
    double value;
    std::string text;
  };
  const std::vector<Tick>& ticks() const { return ticks_; }
  /// The position of a value: 0 at `low`, 1 at `high`.
  double share(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  void linear_ticks(int count);
  void log_ticks(int count);

  double low_, high_;
  Scale scale_;
  std::vector<Tick> ticks_;
};

/// Four significant digits: `0.0853`, `1.25e-05`; whole numbers, such as steps, in full.
std::string number_text(double value);

}  // namespace weft::support
