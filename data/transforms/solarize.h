// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Bytes from `threshold` upwards become 255 minus themselves.
Picture solarize(Picture picture, double threshold);

}  // namespace weft::data
