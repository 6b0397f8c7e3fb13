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

Image pad_and_crop(const Image& image, int64_t padding, Draw& draw) {
  WEFT_CHECK(padding >= 0, "pad_and_crop: expected a padding of at least 0, got ", padding);
  const int64_t top = draw.below(2 * padding + 1) - padding;
  const int64_t left = draw.below(2 * padding + 1) - padding;
  return crop(image, top, left, image.height, image.width);
}

}  // namespace weft::data
