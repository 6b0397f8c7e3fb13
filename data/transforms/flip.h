// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/image.h"

namespace weft::data {

/// The image as a mirror shows it: left and right exchanged.
Image horizontal_flip(const Image& image);

}  // namespace weft::data
