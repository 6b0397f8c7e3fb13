// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/draw.h"
#include "data/image.h"

namespace weft::data {

/// How far each property may move: brightness, contrast and saturation are multiplied by a factor in [max(0, 1 - x),
/// 1 + x], hue is turned by -x … x of a full turn.
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

}  // namespace weft::data
