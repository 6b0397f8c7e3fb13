// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/contrast.h"

#include <algorithm>
#include <utility>

#include "data/transforms/blend.h"
#include "data/transforms/lookup.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

uint8_t mean_grey(const Picture& picture) {
  int64_t sum = 0;
  const auto step = static_cast<size_t>(picture.channels);
  for (size_t i = 0; i < picture.pixels.size(); i += step)
    sum += step >= 3 ? grey_of(&picture.pixels[i]) : picture.pixels[i];
  const int64_t pixels = std::max<int64_t>(1, picture.height * picture.width);
  return static_cast<uint8_t>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5);
}

}  // namespace

Picture contrast(Picture picture, double factor) {
  WEFT_CHECK(factor >= 0, "contrast: expected a factor of at least 0, got ", factor);
  const uint8_t ground = mean_grey(picture);
  Lookup table;
  for (int byte = 0; byte < 256; ++byte)
    table[byte] = blend(ground, static_cast<uint8_t>(byte), static_cast<float>(factor));
  return look_up(std::move(picture), table);
}

}  // namespace weft::data
