// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/color_jitter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/error.h"

namespace weft::data {
namespace {

/// Luma of ITU-R BT.601 in 16-bit fixed point.
uint8_t grey_of(const uint8_t* pixel) {
  return static_cast<uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
}

uint8_t blend(double ground, uint8_t value, double factor) {
  return static_cast<uint8_t>(std::clamp(ground + factor * (value - ground), 0.0, 255.0));
}

double mean_grey(const Picture& picture) {
  double sum = 0;
  const auto pixels = static_cast<size_t>(picture.height * picture.width);
  const auto step = static_cast<size_t>(picture.channels);
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* pixel = &picture.pixels[i * step];
    sum += step >= 3 ? grey_of(pixel) : *pixel;
  }
  return std::floor(sum / static_cast<double>(pixels) + 0.5);
}

void blend_all(Picture& picture, double ground, double factor) {
  for (uint8_t& value : picture.pixels) value = blend(ground, value, factor);
}

void saturate(Picture& picture, double factor) {
  if (picture.channels < 3) return;
  for (size_t i = 0; i < picture.pixels.size(); i += static_cast<size_t>(picture.channels)) {
    uint8_t* pixel = &picture.pixels[i];
    const double grey = grey_of(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(grey, pixel[c], factor);
  }
}

}  // namespace

Picture color_jitter(Picture picture, const ColorJitterOptions& o, Draw& draw) {
  WEFT_CHECK(o.brightness >= 0 && o.contrast >= 0 && o.saturation >= 0,
             "color_jitter: expected options of at least 0, got ", o.brightness, ", ", o.contrast, ", ", o.saturation);
  const auto factor = [&](double reach) { return draw.uniform(std::max(0.0, 1 - reach), 1 + reach); };
  const double brightness = factor(o.brightness), contrast = factor(o.contrast), saturation = factor(o.saturation);
  std::array<int, 3> order{0, 1, 2};
  for (int i = 2; i > 0; --i) std::swap(order[i], order[draw.below(i + 1)]);
  for (const int step : order) {
    if (step == 0 && o.brightness > 0) blend_all(picture, 0, brightness);
    if (step == 1 && o.contrast > 0) blend_all(picture, mean_grey(picture), contrast);
    if (step == 2 && o.saturation > 0) saturate(picture, saturation);
  }
  return picture;
}

}  // namespace weft::data
