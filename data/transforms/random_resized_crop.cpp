// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/random_resized_crop.h"

#include <cmath>

#include "kernels/error.h"

namespace weft::data {

Window random_window(int64_t height, int64_t width, const RandomResizedCropOptions& o, Draw& draw) {
  WEFT_CHECK(o.least_area > 0 && o.least_area <= o.most_area && o.least_ratio > 0 && o.least_ratio <= o.most_ratio,
             "random_resized_crop: expected 0 < least <= most, got areas ", o.least_area, " to ", o.most_area,
             " and ratios ", o.least_ratio, " to ", o.most_ratio);
  const auto area = static_cast<double>(height * width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * draw.uniform(o.least_area, o.most_area);
    const double ratio = std::exp(draw.uniform(std::log(o.least_ratio), std::log(o.most_ratio)));
    const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted * ratio)));
    const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted / ratio)));
    if (w > 0 && w <= width && h > 0 && h <= height)
      return {draw.below(height - h + 1), draw.below(width - w + 1), h, w};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  int64_t h = height, w = width;
  if (ratio < o.least_ratio) h = static_cast<int64_t>(std::nearbyint(static_cast<double>(width) / o.least_ratio));
  if (ratio > o.most_ratio) w = static_cast<int64_t>(std::nearbyint(static_cast<double>(height) * o.most_ratio));
  return {(height - h) / 2, (width - w) / 2, h, w};
}

Image random_resized_crop(const Image& image, const RandomResizedCropOptions& options, Draw& draw) {
  const Window window = random_window(image.height, image.width, options, draw);
  return resize(image, window, options.height, options.width, options.filter);
}

}  // namespace weft::data
