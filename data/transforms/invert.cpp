// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/invert.h"

namespace weft::data {

Picture invert(Picture picture) {
  for (uint8_t& value : picture.pixels) value = static_cast<uint8_t>(255 - value);
  return picture;
}

}  // namespace weft::data
