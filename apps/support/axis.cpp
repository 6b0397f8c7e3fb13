// SPDX-License-Identifier: Apache-2.0
#include "apps/support/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/progress.h"

namespace weft::support {
namespace {

/// The least of 1, 2, 5, 10, … times a power of ten (or of round times) that is at least `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

double round_seconds(double step) {
  for (const double seconds :
       {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400})
    if (seconds >= step) return seconds;
  return 86400 * round_step(step / 86400);
}

/// A tick's label, with enough digits to differ from its neighbours; the `largest` one decides the format of all.
std::string tick_text(double value, double step, double largest) {
  if (value == 0) return "0";
  if (largest >= 1e6 || step < 1e-7) return fmt::format("{:.{}g}", value, step < largest / 100 ? 4 : 3);
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == std::round(value) && std::abs(value) < 1e7) return fmt::format("{:.0f}", value + 0.0);  // no -0
  return fmt::format("{:.4g}", value);
}

Axis::Axis(double low, double high, Scale scale, int ticks) : low_(low), high_(high), scale_(scale) {
  if (!(high_ > low_)) {  // only one value: centre it
    const double room = low_ == 0 ? 1 : std::abs(low_) * 0.1;
    using Limits = std::numeric_limits<double>;
    if (scale_ == Scale::log)
      low_ = std::max(low_ / 2, Limits::denorm_min()), high_ = std::min(high_, Limits::max() / 2) * 2;
    else
      low_ -= room, high_ += room;
  }
  if (scale_ == Scale::log)
    log_ticks(ticks);
  else
    linear_ticks(ticks);
}

double Axis::share(double value) const {
  if (scale_ == Scale::log) return (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_));
  return (value - low_) / (high_ - low_);
}

void Axis::linear_ticks(int count) {
  const double wanted = (high_ - low_) / std::max(count, 1);
  const double step = scale_ == Scale::clock && wanted >= 0.5 ? round_seconds(wanted) : round_step(wanted);
  const double largest = std::max(std::abs(low_), std::abs(high_));
  if (!(step > 1e-15 * largest) || !std::isfinite(step)) return;  // below, two ticks are one double
  if (std::floor(high_ / step) - std::ceil(low_ / step) < 1 && count < 8)
    return linear_ticks(count + 1);  // at least two
  const double first = std::ceil(low_ / step - 1e-9), last = std::floor(high_ / step + 1e-9);
  for (int i = 0; i < 100 && first + i <= last; ++i) {
    const double value = (first + i) * step == 0 ? 0 : (first + i) * step;  // no -0
    ticks_.push_back(
        {value, scale_ == Scale::clock && step >= 1 ? train::clock_text(value) : tick_text(value, step, largest)});
  }
}

void Axis::log_ticks(int count) {
  const double decades = std::log10(high_) - std::log10(low_);  // the quotient may be infinite
  const int first = static_cast<int>(std::floor(std::log10(low_)));
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / std::max(count, 1))));
  const std::vector<double> factors = decades < 1.5 ? std::vector<double>{1, 2, 3, 5, 7} : std::vector<double>{1};
  for (int power = first; power <= std::log10(high_) + 1e-9; power += stride)
    for (const double factor : factors) {
      const double value = factor * std::pow(10, power);
      if (value >= low_ * (1 - 1e-9) && value <= high_ * (1 + 1e-9)) ticks_.push_back({value, number_text(value)});
    }
  if (ticks_.size() < 2) ticks_ = {{low_, number_text(low_)}, {high_, number_text(high_)}};
}

}  // namespace weft::support
