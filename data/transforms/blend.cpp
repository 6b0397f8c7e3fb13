// SPDX-License-Identifier: Apache-2.0
// Built with -ffp-contract=off: a fused multiply-add rounds once where Pillow rounds twice.
#include "data/transforms/blend.h"

#include <algorithm>

#include "kernels/error.h"

namespace weft::data {

uint8_t blend(uint8_t ground, uint8_t value, float factor) {
  const float from = ground;
  return static_cast<uint8_t>(std::clamp(from + factor * static_cast<float>(value - ground), 0.0f, 255.0f));
}

Picture blend(const Picture& ground, Picture picture, double factor) {
  WEFT_CHECK(ground.height == picture.height && ground.width == picture.width && ground.channels == picture.channels,
             "blend: expected pictures of one size, got ", ground.height, "x", ground.width, "x", ground.channels,
             " and ", picture.height, "x", picture.width, "x", picture.channels);
  const auto share = static_cast<float>(factor);
  const uint8_t* const from = ground.pixels.data();
  uint8_t* const to = picture.pixels.data();  // pointers of its own: a byte that is written may be a vector's inside
  const size_t count = picture.pixels.size();
  for (size_t i = 0; i < count; ++i) to[i] = blend(from[i], to[i], share);
  return picture;
}

}  // namespace weft::data
