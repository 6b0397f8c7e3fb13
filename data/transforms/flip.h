// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// The picture as a mirror shows it: left and right exchanged.
Picture horizontal_flip(const Picture& picture);

}  // namespace weft::data
