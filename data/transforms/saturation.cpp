// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/saturation.h"

#include <utility>

#include "data/transforms/blend.h"
#include "kernels/error.h"

namespace weft::data {

Picture saturation(Picture picture, double factor) {
  WEFT_CHECK(factor >= 0, "saturation: expected a factor of at least 0, got ", factor);
  if (picture.channels < 3) return picture;
  Picture grey = picture;
  for (size_t i = 0; i < grey.pixels.size(); i += static_cast<size_t>(grey.channels)) {
    const uint8_t luma = grey_of(&picture.pixels[i]);
    for (size_t c = 0; c < 3; ++c) grey.pixels[i + c] = luma;  // a fourth channel keeps its value
  }
  return blend(grey, std::move(picture), factor);
}

}  // namespace weft::data
