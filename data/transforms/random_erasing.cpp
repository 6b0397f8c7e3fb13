// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/random_erasing.h"

#include <cmath>

#include "kernels/error.h"

namespace weft::data {
namespace {

void erase(Picture& picture, int64_t top, int64_t left, int64_t height, int64_t width, const Fill& fill) {
  const auto channels = static_cast<size_t>(picture.channels);
  for (int64_t y = top; y < top + height; ++y) {
    uint8_t* row = picture.row(y) + left * picture.channels;
    for (size_t i = 0; i < static_cast<size_t>(width) * channels; ++i) row[i] = fill.empty() ? 0 : fill[i % channels];
  }
}

}  // namespace

Picture random_erasing(Picture picture, const RandomErasingOptions& o, Draw& draw) {
  WEFT_CHECK(o.probability >= 0 && o.probability <= 1, "random_erasing: expected a probability from 0 to 1, got ",
             o.probability);
  WEFT_CHECK(o.least_area >= 0 && o.least_area <= o.most_area && o.most_area <= 1 && o.least_ratio > 0 &&
                 o.least_ratio <= o.most_ratio,
             "random_erasing: expected 0 <= least <= most <= 1, got areas ", o.least_area, " to ", o.most_area,
             " and ratios ", o.least_ratio, " to ", o.most_ratio);
  WEFT_CHECK(o.fill.empty() || static_cast<int64_t>(o.fill.size()) == picture.channels,
             "random_erasing: expected a fill of ", picture.channels, " channels, got ", o.fill.size());
  if (!draw.coin(o.probability)) return picture;
  const auto area = static_cast<double>(picture.height * picture.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * draw.uniform(o.least_area, o.most_area);
    const double ratio = std::exp(draw.uniform(std::log(o.least_ratio), std::log(o.most_ratio)));
    const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted * ratio)));
    const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted / ratio)));
    if (h >= picture.height || w >= picture.width) continue;
    const int64_t top = draw.below(picture.height - h + 1), left = draw.below(picture.width - w + 1);
    erase(picture, top, left, h, w, o.fill);
    break;
  }
  return picture;
}

}  // namespace weft::data
