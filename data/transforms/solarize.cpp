// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/solarize.h"

#include <utility>

#include "data/transforms/lookup.h"

namespace weft::data {

Picture solarize(Picture picture, double threshold) {
  Lookup table;
  for (int byte = 0; byte < 256; ++byte) table[byte] = static_cast<uint8_t>(byte < threshold ? byte : 255 - byte);
  return look_up(std::move(picture), table);
}

}  // namespace weft::data
