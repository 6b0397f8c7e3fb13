// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// Each channel stretched so that its darkest byte becomes 0 and its brightest 255; a channel of one value stays.
Picture autocontrast(Picture picture);

}  // namespace weft::data
