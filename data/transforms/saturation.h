// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Blended with the picture's own grey version; with fewer than three channels it stays as it is. Errors: a factor
/// below 0.
Picture saturation(Picture picture, double factor);

}  // namespace weft::data
