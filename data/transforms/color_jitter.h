// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/draw.h"
#include "data/picture.h"

namespace weft::data {

/// How far each property may move: brightness, contrast and saturation are multiplied by a factor in [1 - x, 1 + x].
struct ColorJitterOptions {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
};

/// Blends of the picture with black, with its mean grey and with its own grey version, in random order, as
/// torchvision's ColorJitter. Pictures with fewer than three channels keep their saturation. Errors: a negative option.
Picture color_jitter(Picture picture, const ColorJitterOptions& options, Draw& draw);

}  // namespace weft::data
