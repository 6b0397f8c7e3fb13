// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/flip.h"

#include <cstring>

namespace weft::data {

Image horizontal_flip(const Image& image) {
  Image out = black_image(image.height, image.width, image.channels, image.label);
  const auto pixel = static_cast<size_t>(image.channels);
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x)
      std::memcpy(out.row(y) + x * image.channels, image.row(y) + (image.width - 1 - x) * image.channels, pixel);
  return out;
}

}  // namespace weft::data
