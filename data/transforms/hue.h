// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Hue turned by `shift` of a full turn, -0.5 … 0.5, with hue, saturation and value in bytes between (Smith, SIGGRAPH
/// 1978), as Pillow's HSV mode: it reproduces its values. Pictures with fewer than three channels stay as they are.
/// Errors: a shift outside -0.5 … 0.5.
Picture hue(Picture picture, double shift);

}  // namespace weft::data
