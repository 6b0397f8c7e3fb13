// SPDX-License-Identifier: Apache-2.0
// Built with -ffp-contract=off: a fused multiply-add rounds once where Pillow rounds twice.
#include "data/transforms/autocontrast.h"

#include <algorithm>
#include <utility>

#include "data/transforms/lookup.h"

namespace weft::data {
namespace {

Lookup stretch(const std::array<int64_t, 256>& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[low] == 0) ++low;
  while (high > 0 && counts[high] == 0) --high;
  const double scale = high > low ? 255.0 / (high - low) : 1, offset = high > low ? -low * scale : 0;
  Lookup table;
  for (int byte = 0; byte < 256; ++byte)
    table[byte] = static_cast<uint8_t>(std::clamp(static_cast<int>(byte * scale + offset), 0, 255));
  return table;
}

}  // namespace

Picture autocontrast(Picture picture) {
  std::vector<Lookup> tables;
  for (int64_t c = 0; c < picture.channels; ++c) tables.push_back(stretch(histogram(picture, c)));
  return look_up(std::move(picture), tables);
}

}  // namespace weft::data
