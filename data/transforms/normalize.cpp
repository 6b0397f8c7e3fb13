// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/normalize.h"

#include "kernels/error.h"

namespace weft::data {
namespace {

/// Calls put(y index, channel, byte) for every element of the window.
template <class Put>
void for_window(int64_t rows, int64_t columns, const PictureView& x, Place place, Put&& put) {
  int64_t at = 0;
  for (int64_t p = 0; p < rows; ++p) {
    const int64_t v = place.top + p;
    const bool row_inside = v >= 0 && v < x.height;
    for (int64_t q = 0; q < columns; ++q) {
      const int64_t u = place.left + (place.flip ? columns - 1 - q : q);
      const bool is_inside = row_inside && u >= 0 && u < x.width;
      const uint8_t* pixel = is_inside ? x.pixels + (v * x.width + u) * x.channels : nullptr;
      for (int64_t c = 0; c < x.channels; ++c) put(at++, c, pixel ? pixel[c] : uint8_t{0});
    }
  }
}

}  // namespace

NormalizeTable::NormalizeTable(const std::vector<float>& mean, const std::vector<float>& std) {
  WEFT_CHECK(mean.size() == std.size() && mean.size() <= 4, "normalize: expected mean and std of 1 to 4 channels, got ",
             mean.size(), " and ", std.size());
  for (size_t c = 0; c < mean.size(); ++c) {
    WEFT_CHECK(std[c] > 0, "normalize: expected a positive std, got ", std[c], " for channel ", c);
    for (int byte = 0; byte < 256; ++byte) value[c][byte] = (static_cast<float>(byte) / 255.0f - mean[c]) / std[c];
  }
}

void normalize(float* y, int64_t rows, int64_t columns, const PictureView& x, Place place,
               const NormalizeTable& table) {
  for_window(rows, columns, x, place, [&](int64_t at, int64_t c, uint8_t byte) { y[at] = table.value[c][byte]; });
}

void cut_out(uint8_t* y, int64_t rows, int64_t columns, const PictureView& x, Place place) {
  for_window(rows, columns, x, place, [&](int64_t at, int64_t, uint8_t byte) { y[at] = byte; });
}

}  // namespace weft::data
