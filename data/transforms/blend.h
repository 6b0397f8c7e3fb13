// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// ground + factor (value - ground) in f32, cut to 0 … 255 and rounded towards 0: the arithmetic of Pillow's
/// Image.blend, whose values it reproduces. A factor of 0 is the ground, 1 the value, above 1 goes away from the
/// ground.
uint8_t blend(uint8_t ground, uint8_t value, float factor);

/// Pixel by pixel. Errors: sizes that differ.
Picture blend(const Picture& ground, Picture picture, double factor);

/// Luma of ITU-R BT.601 in 16-bit fixed point, of a pixel with at least three channels.
inline uint8_t grey_of(const uint8_t* pixel) {
  return static_cast<uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
}

}  // namespace weft::data
