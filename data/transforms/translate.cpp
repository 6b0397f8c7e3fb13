// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/translate.h"

#include <algorithm>
#include <cstring>

namespace weft::data {

Picture translate(const Picture& picture, int64_t right, int64_t down, const Fill& fill) {
  Picture out = filled(picture, fill);
  const int64_t first_x = std::max<int64_t>(0, right), end_x = std::min(picture.width, picture.width + right);
  if (first_x >= end_x) return out;
  const auto bytes = static_cast<size_t>((end_x - first_x) * picture.channels);
  for (int64_t y = std::max<int64_t>(0, down); y < std::min(picture.height, picture.height + down); ++y)
    std::memcpy(out.row(y) + first_x * picture.channels, picture.row(y - down) + (first_x - right) * picture.channels,
                bytes);
  return out;
}

}  // namespace weft::data
