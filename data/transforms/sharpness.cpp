// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/sharpness.h"

#include <utility>

#include "data/transforms/blend.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

Picture smoothed(const Picture& picture) {
  Picture out = picture;
  const int64_t step = picture.channels, row_bytes = picture.width * step;
  for (int64_t y = 1; y + 1 < picture.height; ++y) {
    const uint8_t *above = picture.row(y - 1), *here = picture.row(y), *below = picture.row(y + 1);
    uint8_t* to = out.row(y);
    for (int64_t i = step; i < row_bytes - step; ++i) {
      const int sum = above[i - step] + above[i] + above[i + step] + here[i - step] + 5 * here[i] + here[i + step] +
                      below[i - step] + below[i] + below[i + step];
      to[i] = static_cast<uint8_t>((sum + 6) / 13);  // to the nearest: there are no halves
    }
  }
  return out;
}

}  // namespace

Picture sharpness(Picture picture, double factor) {
  WEFT_CHECK(factor >= 0, "sharpness: expected a factor of at least 0, got ", factor);
  const Picture ground = smoothed(picture);
  return blend(ground, std::move(picture), factor);
}

}  // namespace weft::data
