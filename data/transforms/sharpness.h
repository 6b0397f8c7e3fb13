// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Blended with a smoothed version, (sum of 3x3 + 4 centre) / 13, whose border stays as it is (Pillow's SMOOTH): 0
/// smooths, 1 keeps, 2 sharpens. Errors: a factor below 0.
Picture sharpness(Picture picture, double factor);

}  // namespace weft::data
