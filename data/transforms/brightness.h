// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Blended with black: every byte times the factor. Errors: a factor below 0.
Picture brightness(Picture picture, double factor);

}  // namespace weft::data
