// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/color_jitter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/transforms/blend.h"
#include "data/transforms/hue.h"
#include "kernels/error.h"

namespace weft::data {

void check(const ColorJitterOptions& o) {
  WEFT_CHECK(o.brightness >= 0 && o.contrast >= 0 && o.saturation >= 0 && o.hue >= 0,
             "color_jitter: expected options of at least 0, got ", o.brightness, ", ", o.contrast, ", ", o.saturation,
             ", ", o.hue);
  WEFT_CHECK(o.hue <= 0.5, "color_jitter: expected a hue of at most 0.5, got ", o.hue);
}

Image color_jitter(Image image, const ColorJitterOptions& o, Draw& draw) {
  check(o);
  const auto factor = [&](double reach) { return draw.uniform(std::max(0.0, 1 - reach), 1 + reach); };
  const double brighter = factor(o.brightness), starker = factor(o.contrast), richer = factor(o.saturation);
  const double turn = draw.uniform(-o.hue, o.hue);
  std::array<int, 4> order{0, 1, 2, 3};
  for (int i = 3; i > 0; --i) std::swap(order[i], order[draw.below(i + 1)]);
  for (const int step : order) {
    if (step == 0 && o.brightness > 0) image = brightness(std::move(image), brighter);
    if (step == 1 && o.contrast > 0) image = contrast(std::move(image), starker);
    if (step == 2 && o.saturation > 0) image = saturation(std::move(image), richer);
    if (step == 3 && o.hue > 0) image = hue(std::move(image), turn);
  }
  return image;
}

}  // namespace weft::data
