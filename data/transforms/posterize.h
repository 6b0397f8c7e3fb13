// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Keeps the `bits` highest bits of every byte. Errors: bits outside 0 … 8.
Picture posterize(Picture picture, int bits);

}  // namespace weft::data
