// SPDX-License-Identifier: Apache-2.0
// Built with -ffp-contract=off: a fused multiply-add rounds once where Pillow rounds twice.
#include "data/transforms/blend.h"

#include <algorithm>
#include <utility>

#include "data/transforms/lookup.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

uint8_t mean_grey(const Image& image) {
  int64_t sum = 0;
  const auto step = static_cast<size_t>(image.channels);
  for (size_t i = 0; i < image.pixels.size(); i += step) sum += step >= 3 ? grey_of(&image.pixels[i]) : image.pixels[i];
  const int64_t pixels = std::max<int64_t>(1, image.height * image.width);
  return static_cast<uint8_t>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5);
}

Image smoothed(const Image& image) {
  Image out = image;
  const int64_t step = image.channels, row_bytes = image.width * step;
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    const uint8_t *above = image.row(y - 1), *here = image.row(y), *below = image.row(y + 1);
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

uint8_t blend(uint8_t ground, uint8_t value, float factor) {
  const float from = ground;
  return static_cast<uint8_t>(std::clamp(from + factor * static_cast<float>(value - ground), 0.0f, 255.0f));
}

Image blend(const Image& ground, Image image, double factor) {
  WEFT_CHECK(ground.height == image.height && ground.width == image.width && ground.channels == image.channels,
             "blend: expected images of one size, got ", ground.height, "x", ground.width, "x", ground.channels,
             " and ", image.height, "x", image.width, "x", image.channels);
  const auto share = static_cast<float>(factor);
  const uint8_t* const from = ground.pixels.data();
  uint8_t* const to = image.pixels.data();  // pointers of its own: a byte that is written may be a vector's inside
  const size_t count = image.pixels.size();
  for (size_t i = 0; i < count; ++i) to[i] = blend(from[i], to[i], share);
  return image;
}

Image brightness(Image image, double factor) {
  WEFT_CHECK(factor >= 0, "brightness: expected a factor of at least 0, got ", factor);
  Lookup table;
  for (int byte = 0; byte < 256; ++byte) table[byte] = blend(0, static_cast<uint8_t>(byte), static_cast<float>(factor));
  return look_up(std::move(image), table);
}

Image contrast(Image image, double factor) {
  WEFT_CHECK(factor >= 0, "contrast: expected a factor of at least 0, got ", factor);
  const uint8_t ground = mean_grey(image);
  Lookup table;
  for (int byte = 0; byte < 256; ++byte)
    table[byte] = blend(ground, static_cast<uint8_t>(byte), static_cast<float>(factor));
  return look_up(std::move(image), table);
}

Image saturation(Image image, double factor) {
  WEFT_CHECK(factor >= 0, "saturation: expected a factor of at least 0, got ", factor);
  if (image.channels < 3) return image;
  Image grey = image;
  for (size_t i = 0; i < grey.pixels.size(); i += static_cast<size_t>(grey.channels)) {
    const uint8_t luma = grey_of(&image.pixels[i]);
    for (size_t c = 0; c < 3; ++c) grey.pixels[i + c] = luma;  // a fourth channel keeps its value
  }
  return blend(grey, std::move(image), factor);
}

Image sharpness(Image image, double factor) {
  WEFT_CHECK(factor >= 0, "sharpness: expected a factor of at least 0, got ", factor);
  const Image ground = smoothed(image);
  return blend(ground, std::move(image), factor);
}

}  // namespace weft::data
