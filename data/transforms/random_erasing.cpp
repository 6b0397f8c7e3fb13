// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/random_erasing.h"

#include <cmath>

#include "kernels/error.h"

namespace weft::data {
namespace {

void erase(Image& image, int64_t top, int64_t left, int64_t height, int64_t width, const Fill& fill) {
  const auto channels = static_cast<size_t>(image.channels);
  for (int64_t y = top; y < top + height; ++y) {
    uint8_t* row = image.row(y) + left * image.channels;
    for (size_t i = 0; i < static_cast<size_t>(width) * channels; ++i) row[i] = fill.empty() ? 0 : fill[i % channels];
  }
}

}  // namespace

Image random_erasing(Image image, const RandomErasingOptions& o, Draw& draw) {
  WEFT_CHECK(o.probability >= 0 && o.probability <= 1, "random_erasing: expected a probability from 0 to 1, got ",
             o.probability);
  WEFT_CHECK(o.least_area >= 0 && o.least_area <= o.most_area && o.most_area <= 1 && o.least_ratio > 0 &&
                 o.least_ratio <= o.most_ratio,
             "random_erasing: expected 0 <= least <= most <= 1, got areas ", o.least_area, " to ", o.most_area,
             " and ratios ", o.least_ratio, " to ", o.most_ratio);
  WEFT_CHECK(o.fill.empty() || static_cast<int64_t>(o.fill.size()) == image.channels,
             "random_erasing: expected a fill of ", image.channels, " channels, got ", o.fill.size());
  if (!draw.coin(o.probability)) return image;
  const auto area = static_cast<double>(image.height * image.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * draw.uniform(o.least_area, o.most_area);
    const double ratio = std::exp(draw.uniform(std::log(o.least_ratio), std::log(o.most_ratio)));
    const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted * ratio)));
    const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted / ratio)));
    if (h >= image.height || w >= image.width) continue;
    const int64_t top = draw.below(image.height - h + 1), left = draw.below(image.width - w + 1);
    erase(image, top, left, h, w, o.fill);
    break;
  }
  return image;
}

}  // namespace weft::data
