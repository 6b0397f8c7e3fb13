// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Every byte becomes 255 minus itself.
Picture invert(Picture picture);

}  // namespace weft::data
