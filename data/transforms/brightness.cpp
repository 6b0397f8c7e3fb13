// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/brightness.h"

#include <utility>

#include "data/transforms/blend.h"
#include "data/transforms/lookup.h"
#include "kernels/error.h"

namespace weft::data {

Picture brightness(Picture picture, double factor) {
  WEFT_CHECK(factor >= 0, "brightness: expected a factor of at least 0, got ", factor);
  Lookup table;
  for (int byte = 0; byte < 256; ++byte) table[byte] = blend(0, static_cast<uint8_t>(byte), static_cast<float>(factor));
  return look_up(std::move(picture), table);
}

}  // namespace weft::data
