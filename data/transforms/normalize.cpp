// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/normalize.h"

#include <algorithm>

#include "kernels/error.h"

namespace weft::data {
namespace {

/// Writes one row of a window: value(c, byte) of each byte. `pixels` is the stored row, or null where the window's row
/// lies outside; columns outside are black. The channels are known when this is compiled, so that no loop is over three
/// bytes.
template <int Channels, class Out, class Value>
void lay_row(Out* y, int64_t columns, const uint8_t* pixels, int64_t width, Place place, const Value& value) {
  const auto lay_black = [&](int64_t from, int64_t to) {
    for (int64_t q = from; q < to; ++q)
      for (int c = 0; c < Channels; ++c) y[q * Channels + c] = value(c, 0);
  };
  // Column q of the window is column left + q of the image, or of the mirrored image.
  const int64_t left = place.flip ? width - columns - place.left : place.left;
  const int64_t first = pixels ? std::clamp<int64_t>(-left, 0, columns) : columns;
  const int64_t end = pixels ? std::clamp<int64_t>(width - left, first, columns) : columns;
  lay_black(0, first);
  if (first == end) {
    // Nothing of the image, which may not even have this row.
  } else if (place.flip) {
    const uint8_t* pixel = pixels + (width - 1 - left - first) * Channels;
    for (int64_t q = first; q < end; ++q, pixel -= Channels)
      for (int c = 0; c < Channels; ++c) y[q * Channels + c] = value(c, pixel[c]);
  } else {
    const uint8_t* pixel = pixels + (left + first) * Channels;
    for (int64_t q = first; q < end; ++q, pixel += Channels)
      for (int c = 0; c < Channels; ++c) y[q * Channels + c] = value(c, pixel[c]);
  }
  lay_black(end, columns);
}

template <class Out, class Value>
void lay_window(Out* y, int64_t rows, int64_t columns, const ImageView& x, Place place, const Value& value) {
  constexpr decltype(&lay_row<1, Out, Value>) kRows[] = {lay_row<1, Out, Value>, lay_row<2, Out, Value>,
                                                         lay_row<3, Out, Value>, lay_row<4, Out, Value>};
  WEFT_CHECK(x.channels >= 1 && x.channels <= 4, "normalize: expected an image of 1 to 4 channels, got ", x.channels);
  const auto lay = kRows[x.channels - 1];
  for (int64_t p = 0; p < rows; ++p) {
    const int64_t v = place.top + p;
    const uint8_t* pixels = v >= 0 && v < x.height ? x.pixels + v * x.width * x.channels : nullptr;
    lay(y + p * columns * x.channels, columns, pixels, x.width, place, value);
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

void normalize(float* y, int64_t rows, int64_t columns, const ImageView& x, Place place, const NormalizeTable& table) {
  lay_window(y, rows, columns, x, place, [&](int c, uint8_t byte) { return table.value[c][byte]; });
}

void cut_out(uint8_t* y, int64_t rows, int64_t columns, const ImageView& x, Place place) {
  lay_window(y, rows, columns, x, place, [](int, uint8_t byte) { return byte; });
}

}  // namespace weft::data
