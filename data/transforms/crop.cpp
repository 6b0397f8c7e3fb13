// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/crop.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/error.h"

namespace weft::data {

Picture crop(const Picture& picture, int64_t top, int64_t left, int64_t height, int64_t width) {
  WEFT_CHECK(height > 0 && width > 0, "crop: expected a window of at least 1x1, got ", height, "x", width);
  Picture out = black_picture(height, width, picture.channels, picture.label);
  const int64_t first_x = std::max<int64_t>(0, -left), end_x = std::min(width, picture.width - left);
  const int64_t first_y = std::max<int64_t>(0, -top), end_y = std::min(height, picture.height - top);
  if (first_x >= end_x) return out;
  for (int64_t y = first_y; y < end_y; ++y)
    std::memcpy(out.row(y) + first_x * picture.channels, picture.row(top + y) + (left + first_x) * picture.channels,
                static_cast<size_t>((end_x - first_x) * picture.channels));
  return out;
}

Picture centre_crop(const Picture& picture, int64_t height, int64_t width) {
  const auto offset = [](int64_t whole, int64_t window) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(whole - window) / 2));
  };
  return crop(picture, offset(picture.height, height), offset(picture.width, width), height, width);
}

Picture pad_and_crop(const Picture& picture, int64_t padding, Draw& draw) {
  WEFT_CHECK(padding >= 0, "pad_and_crop: expected a padding of at least 0, got ", padding);
  const int64_t top = draw.below(2 * padding + 1) - padding;
  const int64_t left = draw.below(2 * padding + 1) - padding;
  return crop(picture, top, left, picture.height, picture.width);
}

}  // namespace weft::data
