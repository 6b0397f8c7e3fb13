// SPDX-License-Identifier: Apache-2.0
// Built with -ffp-contract=off: a fused multiply-add rounds once where Pillow rounds twice.
#include "data/transforms/color.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "kernels/error.h"

namespace weft::data {
namespace {

uint8_t mean_grey(const Image& image) {
  int64_t sum = 0;
  const auto step = static_cast<size_t>(image.channels);
  for (size_t i = 0; i < image.pixels.size(); i += step) sum += step >= 3 ? grey_of(&image.pixels[i]) : image.pixels[i];
  const int64_t pixels = std::max<int64_t>(1, image.height * image.width);
  return static_cast<uint8_t>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5);
}

Image smoothed(const Image& image) {
  Image out = image;
  const int64_t step = image.channels, row_bytes = image.width * step;
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    const uint8_t *above = image.row(y - 1), *here = image.row(y), *below = image.row(y + 1);
    uint8_t* to = out.row(y);
    for (int64_t i = step; i < row_bytes - step; ++i) {
      const int sum = above[i - step] + above[i] + above[i + step] + here[i - step] + 5 * here[i] + here[i + step] +
                      below[i - step] + below[i] + below[i + step];
      to[i] = static_cast<uint8_t>((sum + 6) / 13);  // to the nearest: there are no halves
    }
  }
  return out;
}

}  // namespace

uint8_t blend(uint8_t ground, uint8_t value, float factor) {
  const float from = ground;
  return static_cast<uint8_t>(std::clamp(from + factor * static_cast<float>(value - ground), 0.0f, 255.0f));
}

Image blend(const Image& ground, Image image, double factor) {
  WEFT_CHECK(ground.height == image.height && ground.width == image.width && ground.channels == image.channels,
             "blend: expected images of one size, got ", ground.height, "x", ground.width, "x", ground.channels,
             " and ", image.height, "x", image.width, "x", image.channels);
  const auto share = static_cast<float>(factor);
  const uint8_t* const from = ground.pixels.data();
  uint8_t* const to = image.pixels.data();  // pointers of its own: a byte that is written may be a vector's inside
  const size_t count = image.pixels.size();
  for (size_t i = 0; i < count; ++i) to[i] = blend(from[i], to[i], share);
  return image;
}

Image brightness(Image image, double factor) {
  WEFT_CHECK(factor >= 0, "brightness: expected a factor of at least 0, got ", factor);
  Lookup table;
  for (int byte = 0; byte < 256; ++byte) table[byte] = blend(0, static_cast<uint8_t>(byte), static_cast<float>(factor));
  return look_up(std::move(image), table);
}

Image contrast(Image image, double factor) {
  WEFT_CHECK(factor >= 0, "contrast: expected a factor of at least 0, got ", factor);
  const uint8_t ground = mean_grey(image);
  Lookup table;
  for (int byte = 0; byte < 256; ++byte)
    table[byte] = blend(ground, static_cast<uint8_t>(byte), static_cast<float>(factor));
  return look_up(std::move(image), table);
}

Image saturation(Image image, double factor) {
  WEFT_CHECK(factor >= 0, "saturation: expected a factor of at least 0, got ", factor);
  if (image.channels < 3) return image;
  Image grey = image;
  for (size_t i = 0; i < grey.pixels.size(); i += static_cast<size_t>(grey.channels)) {
    const uint8_t luma = grey_of(&image.pixels[i]);
    for (size_t c = 0; c < 3; ++c) grey.pixels[i + c] = luma;  // a fourth channel keeps its value
  }
  return blend(grey, std::move(image), factor);
}

Image sharpness(Image image, double factor) {
  WEFT_CHECK(factor >= 0, "sharpness: expected a factor of at least 0, got ", factor);
  const Image ground = smoothed(image);
  return blend(ground, std::move(image), factor);
}

namespace {

/// Pixels are separated in blocks of this size: the loops over plain arrays vectorise. They have selections in place of
/// a single pixel's branches, which are expensive.
constexpr int kBlock = 64;

struct Block {
  int32_t red[kBlock] = {}, green[kBlock] = {}, blue[kBlock] = {};
};

/// Three bytes each; hue 0 to 255 is a whole turn.
struct HsvBlock {
  int32_t hue[kBlock], saturation[kBlock], value[kBlock];
};

void to_hsv(const Block& rgb, HsvBlock& hsv) {
  for (int i = 0; i < kBlock; ++i) {
    const int32_t red = rgb.red[i], green = rgb.green[i], blue = rgb.blue[i];
    const int32_t most = std::max(std::max(red, green), blue), least = std::min(std::min(red, green), blue);
    const bool is_grey = most == least, is_red = red == most, is_green = green == most;
    const auto range = static_cast<float>(is_grey ? 1 : most - least);
    // How far below the largest are the two others, in sixths of a turn from the sector's middle.
    const int32_t behind = is_red ? blue : is_green ? red : green, ahead = is_red ? green : is_green ? blue : red;
    const double middle = is_red ? 0.0 : is_green ? 2.0 : 4.0;
    const float below_behind = static_cast<float>(most - behind) / range;
    const float below_ahead = static_cast<float>(most - ahead) / range;
    const auto sixths = static_cast<float>(middle + below_behind - below_ahead);
    const double turns = sixths / 6.0 + 1.0;  // 5/6 to 11/6: the whole turns are dropped
    const auto turn = static_cast<float>(turns < 1 ? turns : turns - 1);
    const auto share = range / static_cast<float>(std::max(most, 1));
    hsv.hue[i] = static_cast<int32_t>(turn * 255.0);
    hsv.saturation[i] = is_grey ? 0 : static_cast<int32_t>(share * 255.0);
    hsv.value[i] = most;
  }
}

/// Half up; as std::round for what is not negative, without its call.
int32_t rounded(double value) {
  const auto whole = static_cast<int32_t>(value);
  return whole + (value - whole >= 0.5 ? 1 : 0);
}

void to_rgb(const HsvBlock& hsv, Block& rgb) {
  int32_t sector[kBlock], p[kBlock], q[kBlock], t[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    const double sixths = static_cast<double>(hsv.hue[i]) * 6.0 / 255.0;
    const auto whole = static_cast<int32_t>(sixths);
    const auto part = static_cast<float>(sixths - whole);
    const auto saturation = static_cast<float>(static_cast<double>(hsv.saturation[i]) / 255.0);
    const auto value = static_cast<double>(hsv.value[i]);
    sector[i] = whole;
    p[i] = rounded(value * (1.0 - saturation));
    q[i] = rounded(value * (1.0 - saturation * part));
    t[i] = rounded(value * (1.0 - saturation * (1.0 - part)));
  }
  for (int i = 0; i < kBlock; ++i) {  // sectors 0 to 5: vtp, qvp, pvt, pqv, tpv, vpq; 6 is 0
    const int32_t s = sector[i], v = hsv.value[i];
    rgb.red[i] = s == 1 ? q[i] : s == 2 || s == 3 ? p[i] : s == 4 ? t[i] : v;
    rgb.green[i] = s == 1 || s == 2 ? v : s == 3 ? q[i] : s == 4 || s == 5 ? p[i] : t[i];
    rgb.blue[i] = s == 2 ? t[i] : s == 3 || s == 4 ? v : s == 5 ? q[i] : p[i];
  }
}

}  // namespace

Image hue(Image image, double shift) {
  WEFT_CHECK(shift >= -0.5 && shift <= 0.5, "hue: expected a shift from -0.5 to 0.5, got ", shift);
  if (image.channels < 3) return image;
  const auto step = static_cast<uint8_t>(static_cast<int>(shift * 255));  // wraps, as a turn does
  const int64_t pixels = image.height * image.width, channels = image.channels;
  Block rgb;
  HsvBlock hsv;
  for (int64_t first = 0; first < pixels; first += kBlock) {
    const int64_t count = std::min<int64_t>(kBlock, pixels - first);
    uint8_t* const bytes = image.pixels.data() + first * channels;
    for (int64_t i = 0; i < count; ++i) {
      rgb.red[i] = bytes[i * channels];
      rgb.green[i] = bytes[i * channels + 1];
      rgb.blue[i] = bytes[i * channels + 2];
    }
    to_hsv(rgb, hsv);
    for (int i = 0; i < kBlock; ++i) hsv.hue[i] = (hsv.hue[i] + step) & 255;
    to_rgb(hsv, rgb);
    for (int64_t i = 0; i < count; ++i) {
      bytes[i * channels] = static_cast<uint8_t>(rgb.red[i]);
      bytes[i * channels + 1] = static_cast<uint8_t>(rgb.green[i]);
      bytes[i * channels + 2] = static_cast<uint8_t>(rgb.blue[i]);
    }
  }
  return image;
}

void check(const ColorJitterOptions& o) {
  WEFT_CHECK(o.brightness >= 0 && o.contrast >= 0 && o.saturation >= 0 && o.hue >= 0,
             "color_jitter: expected options of at least 0, got ", o.brightness, ", ", o.contrast, ", ", o.saturation,
             ", ", o.hue);
  WEFT_CHECK(o.hue <= 0.5, "color_jitter: expected a hue of at most 0.5, got ", o.hue);
}

Image color_jitter(Image image, const ColorJitterOptions& o, Draw& draw) {
  check(o);
  const auto factor = [&](double reach) { return draw.uniform(std::max(0.0, 1 - reach), 1 + reach); };
  const double brighter = factor(o.brightness), starker = factor(o.contrast), richer = factor(o.saturation);
  const double turn = draw.uniform(-o.hue, o.hue);
  std::array<int, 4> order{0, 1, 2, 3};
  for (int i = 3; i > 0; --i) std::swap(order[i], order[draw.below(i + 1)]);
  for (const int step : order) {
    if (step == 0 && o.brightness > 0) image = brightness(std::move(image), brighter);
    if (step == 1 && o.contrast > 0) image = contrast(std::move(image), starker);
    if (step == 2 && o.saturation > 0) image = saturation(std::move(image), richer);
    if (step == 3 && o.hue > 0) image = hue(std::move(image), turn);
  }
  return image;
}

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
