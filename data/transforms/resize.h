// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/image.h"
#include "data/transforms/crop.h"

namespace weft::data {

/// bilinear: the tent max(0, 1 - |t|). bicubic: Keys' cubic convolution (IEEE ASSP 29, 1981) with a = -0.5.
enum class Filter : uint8_t { bilinear, bicubic };

/// Separable resampling with antialiasing: when shrinking, the filter is stretched by the scale, so that every pixel
/// counts. Rows first, then columns, 8-bit values between, weights in 22-bit fixed point: the arithmetic of Pillow's
/// Image.resize, whose values it reproduces. Errors: a size below 1.
Image resize(const Image& image, int64_t height, int64_t width, Filter filter = Filter::bilinear);

/// The same of a part of the image, as if that were cut out first. Errors: a window that is not in the image.
Image resize(const Image& image, const Window& window, int64_t height, int64_t width, Filter filter = Filter::bilinear);

/// The shorter edge becomes `edge`, the longer one int(edge * longer / shorter), as torchvision's Resize(edge).
Image resize_shortest_edge(const Image& image, int64_t edge, Filter filter = Filter::bilinear);

}  // namespace weft::data
