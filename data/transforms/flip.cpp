// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/flip.h"

#include <cstring>

namespace weft::data {

Picture horizontal_flip(const Picture& picture) {
  Picture out = black_picture(picture.height, picture.width, picture.channels, picture.label);
  const auto pixel = static_cast<size_t>(picture.channels);
  for (int64_t y = 0; y < picture.height; ++y)
    for (int64_t x = 0; x < picture.width; ++x)
      std::memcpy(out.row(y) + x * picture.channels, picture.row(y) + (picture.width - 1 - x) * picture.channels,
                  pixel);
  return out;
}

}  // namespace weft::data
