// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/crop.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/error.h"

namespace weft::data {

Image crop(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  WEFT_CHECK(height > 0 && width > 0, "crop: expected a window of at least 1x1, got ", height, "x", width);
  Image out = black_image(height, width, image.channels, image.label);
  const int64_t first_x = std::max<int64_t>(0, -left), end_x = std::min(width, image.width - left);
  const int64_t first_y = std::max<int64_t>(0, -top), end_y = std::min(height, image.height - top);
  if (first_x >= end_x) return out;
  for (int64_t y = first_y; y < end_y; ++y)
    std::memcpy(out.row(y) + first_x * image.channels, image.row(top + y) + (left + first_x) * image.channels,
                static_cast<size_t>((end_x - first_x) * image.channels));
  return out;
}

Image centre_crop(const Image& image, int64_t height, int64_t width) {
  const auto offset = [](int64_t whole, int64_t window) {
    if (whole < window) return -((window - whole) / 2);
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(whole - window) / 2));
  };
  return crop(image, offset(image.height, height), offset(image.width, width), height, width);
}

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
