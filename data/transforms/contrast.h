// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Blended with the mean of the grey picture, rounded to a byte. Errors: a factor below 0.
Picture contrast(Picture picture, double factor);

}  // namespace weft::data
