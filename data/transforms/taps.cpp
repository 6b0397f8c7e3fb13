// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/taps.h"

#include <algorithm>
#include <cmath>

namespace weft::data {
namespace {

double weight(Filter filter, double t) {
  t = std::abs(t);
  if (filter == Filter::bilinear) return t < 1 ? 1 - t : 0;
  constexpr double a = -0.5;
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return (((t - 5) * t + 8) * t - 4) * a;
  return 0;
}

}  // namespace

Taps make_taps(int64_t in, int64_t out, Filter filter) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double stretch = std::max(scale, 1.0);
  const double reach = (filter == Filter::bilinear ? 1.0 : 2.0) * stretch;
  Taps taps;
  taps.spans.reserve(static_cast<size_t>(out));
  std::vector<double> weights;
  for (int64_t o = 0; o < out; ++o) {
    const double centre = (static_cast<double>(o) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - reach + 0.5));
    const int64_t end = std::min(in, static_cast<int64_t>(centre + reach + 0.5));
    weights.clear();
    double sum = 0;
    for (int64_t i = first; i < end; ++i) {
      weights.push_back(weight(filter, (static_cast<double>(i) - centre + 0.5) / stretch));
      sum += weights.back();
    }
    taps.spans.push_back({first, end - first, static_cast<int64_t>(taps.weights.size())});
    for (const double w : weights) taps.weights.push_back(static_cast<int32_t>(std::lround(w / sum * (1 << kTapBits))));
  }
  return taps;
}

}  // namespace weft::data
