// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/lookup.h"

#include "kernels/error.h"

namespace weft::data {

Picture look_up(Picture picture, const Lookup& table) {
  for (uint8_t& value : picture.pixels) value = table[value];
  return picture;
}

Picture look_up(Picture picture, const std::vector<Lookup>& per_channel) {
  const auto channels = static_cast<size_t>(picture.channels);
  WEFT_CHECK(per_channel.size() == channels, "look_up: expected ", channels, " tables, one per channel, got ",
             per_channel.size());
  for (size_t i = 0; i < picture.pixels.size(); i += channels)
    for (size_t c = 0; c < channels; ++c) picture.pixels[i + c] = per_channel[c][picture.pixels[i + c]];
  return picture;
}

std::array<int64_t, 256> histogram(const Picture& picture, int64_t channel) {
  std::array<int64_t, 256> counts{};
  for (auto i = static_cast<size_t>(channel); i < picture.pixels.size(); i += static_cast<size_t>(picture.channels))
    ++counts[picture.pixels[i]];
  return counts;
}

}  // namespace weft::data
