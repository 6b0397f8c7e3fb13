// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/posterize.h"

#include "kernels/error.h"

namespace weft::data {

Picture posterize(Picture picture, int bits) {
  WEFT_CHECK(bits >= 0 && bits <= 8, "posterize: expected 0 to 8 bits, got ", bits);
  const auto mask = static_cast<uint8_t>(0xFF00 >> bits);
  for (uint8_t& value : picture.pixels) value &= mask;
  return picture;
}

}  // namespace weft::data
