// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::data {

/// One decoded image: 8-bit pixels in [height, width, channels] order, without gaps, and its class.
struct Image {
  std::vector<uint8_t> pixels;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t label = 0;

  const uint8_t* row(int64_t y) const { return pixels.data() + y * width * channels; }
  uint8_t* row(int64_t y) { return pixels.data() + y * width * channels; }
};

/// An image of the given sizes, all black.
inline Image black_image(int64_t height, int64_t width, int64_t channels, int64_t label = 0) {
  return {std::vector<uint8_t>(static_cast<size_t>(height * width * channels)), height, width, channels, label};
}

}  // namespace weft::data
