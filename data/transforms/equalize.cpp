// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/equalize.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/transforms/lookup.h"

namespace weft::data {
namespace {

Lookup flatten(const std::array<int64_t, 256>& counts) {
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto brightest = std::find_if(counts.rbegin(), counts.rend(), [](int64_t count) { return count > 0; });
  const int64_t step = brightest == counts.rend() ? 0 : (all - *brightest) / 255;
  Lookup table;
  int64_t below = step / 2;
  for (int byte = 0; byte < 256; ++byte) {
    table[byte] = static_cast<uint8_t>(step == 0 ? byte : std::min<int64_t>(255, below / step));
    below += counts[byte];
  }
  return table;
}

}  // namespace

Picture equalize(Picture picture) {
  std::vector<Lookup> tables;
  for (int64_t c = 0; c < picture.channels; ++c) tables.push_back(flatten(histogram(picture, c)));
  return look_up(std::move(picture), tables);
}

}  // namespace weft::data
