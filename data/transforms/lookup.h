// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "data/image.h"

namespace weft::data {

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
