// SPDX-License-Identifier: Apache-2.0
// Built with -ffp-contract=off: a fused multiply-add rounds once where Pillow rounds twice.
#include "data/transforms/lookup.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/error.h"

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

Image by_histogram(Image image, Lookup (*table_of)(const std::array<int64_t, 256>& counts)) {
  std::vector<Lookup> tables;
  for (int64_t c = 0; c < image.channels; ++c) tables.push_back(table_of(histogram(image, c)));
  return look_up(std::move(image), tables);
}

}  // namespace

Image look_up(Image image, const Lookup& table) {
  for (uint8_t& value : image.pixels) value = table[value];
  return image;
}

Image look_up(Image image, const std::vector<Lookup>& per_channel) {
  const auto channels = static_cast<size_t>(image.channels);
  WEFT_CHECK(per_channel.size() == channels, "look_up: expected ", channels, " tables, one per channel, got ",
             per_channel.size());
  for (size_t i = 0; i < image.pixels.size(); i += channels)
    for (size_t c = 0; c < channels; ++c) image.pixels[i + c] = per_channel[c][image.pixels[i + c]];
  return image;
}

std::array<int64_t, 256> histogram(const Image& image, int64_t channel) {
  std::array<int64_t, 256> counts{};
  for (auto i = static_cast<size_t>(channel); i < image.pixels.size(); i += static_cast<size_t>(image.channels))
    ++counts[image.pixels[i]];
  return counts;
}

Image invert(Image image) {
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(255 - value);
  return image;
}

Image posterize(Image image, int bits) {
  WEFT_CHECK(bits >= 0 && bits <= 8, "posterize: expected 0 to 8 bits, got ", bits);
  const auto mask = static_cast<uint8_t>(0xFF00 >> bits);
  for (uint8_t& value : image.pixels) value &= mask;
  return image;
}

Image solarize(Image image, double threshold) {
  Lookup table;
  for (int byte = 0; byte < 256; ++byte) table[byte] = static_cast<uint8_t>(byte < threshold ? byte : 255 - byte);
  return look_up(std::move(image), table);
}

Image autocontrast(Image image) { return by_histogram(std::move(image), stretch); }

Image equalize(Image image) { return by_histogram(std::move(image), flatten); }

}  // namespace weft::data
