// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "data/draw.h"
#include "data/image.h"

namespace weft::data {

/// ground + factor (value - ground) in f32, cut to 0 … 255 and rounded towards 0: the arithmetic of Pillow's
/// Image.blend, whose values it reproduces. A factor of 0 is the ground, 1 the value, above 1 goes away from the
/// ground.
uint8_t blend(uint8_t ground, uint8_t value, float factor);

/// Pixel by pixel. Errors: sizes that differ.
Image blend(const Image& ground, Image image, double factor);

/// Luma of ITU-R BT.601 in 16-bit fixed point, of a pixel with at least three channels.
inline uint8_t grey_of(const uint8_t* pixel) {
  return static_cast<uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
}

/// Blended with black: every byte times the factor. Errors: a factor below 0.
Image brightness(Image image, double factor);

/// Blended with the mean of the grey image, rounded to a byte. Errors: a factor below 0.
Image contrast(Image image, double factor);

/// Blended with the image's own grey version; an image with fewer than three channels is unchanged. Errors: a factor
/// below 0.
Image saturation(Image image, double factor);

/// Blended with a smoothed version, (sum of 3x3 + 4 centre) / 13, whose border stays as it is (Pillow's SMOOTH): 0
/// smooths, 1 keeps, 2 sharpens. Errors: a factor below 0.
Image sharpness(Image image, double factor);

/// Hue turned by `shift` of a full turn, -0.5 … 0.5. Hue, saturation and value are bytes in between (Smith, SIGGRAPH
/// 1978), so values equal Pillow's HSV mode. Images with fewer than three channels stay as they are.
/// Errors: a shift outside -0.5 … 0.5.
Image hue(Image image, double shift);

/// How far each property may move: brightness, contrast and saturation are multiplied by a factor in [max(0, 1 - x), 1
/// + x]; hue is turned by -x … x of a full turn.
struct ColorJitterOptions {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;
};

/// Changes of brightness, contrast, saturation and hue in random order, as torchvision's ColorJitter. Images with
/// fewer than three channels keep their saturation and hue. Errors: a negative option, a hue above 0.5.
Image color_jitter(Image image, const ColorJitterOptions& options, Draw& draw);

/// Errors: see color_jitter.
void check(const ColorJitterOptions& options);

/// The value that each byte becomes.
using Lookup = std::array<uint8_t, 256>;

/// Every byte replaced by `table[byte]`, or by its channel's table.
Image look_up(Image image, const Lookup& table);
Image look_up(Image image, const std::vector<Lookup>& per_channel);

/// How often each byte occurs in one channel.
std::array<int64_t, 256> histogram(const Image& image, int64_t channel);

/// Every byte becomes 255 minus itself.
Image invert(Image image);

/// Keeps the `bits` highest bits of every byte. Errors: bits outside 0 … 8.
Image posterize(Image image, int bits);

/// Bytes from `threshold` upwards become 255 minus themselves.
Image solarize(Image image, double threshold);

/// Each channel stretched so that its darkest byte becomes 0 and its brightest 255; a channel of one value stays.
Image autocontrast(Image image);

/// Each channel's bytes replaced by their rank, so that its histogram becomes flat, in whole numbers as Pillow's
/// ImageOps.equalize: byte b becomes (step / 2 + bytes below b) / step with step = (bytes - those of the brightest) /
/// 255; a channel with a step of 0 stays.
Image equalize(Image image);

}  // namespace weft::data
