// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/image.h"

namespace weft::data {

/// Hue turned by `shift` of a full turn, -0.5 … 0.5, with hue, saturation and value in bytes between (Smith, SIGGRAPH
/// 1978), as Pillow's HSV mode: it reproduces its values. Images with fewer than three channels stay as they are.
/// Errors: a shift outside -0.5 … 0.5.
Image hue(Image image, double shift);

}  // namespace weft::data
