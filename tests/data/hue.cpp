// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/color.h"

#include <algorithm>
#include <cmath>

#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

struct Rgb {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Rgb&) const = default;
};

/// Pillow's RGB to HSV and back with a turn in between, one colour at a time and with a branch for each case; floats
/// where Pillow has floats.
Rgb turned(Rgb rgb, int step) {
  const int r = rgb.red, g = rgb.green, b = rgb.blue;
  const int most = std::max({r, g, b}), least = std::min({r, g, b});
  if (most == least) return rgb;
  const auto range = static_cast<float>(most - least);
  const float red = static_cast<float>(most - r) / range, green = static_cast<float>(most - g) / range,
              blue = static_cast<float>(most - b) / range;
  float turn = 0;
  if (r == most)
    turn = blue - green;
  else if (g == most)
    turn = static_cast<float>(2.0 + red - blue);
  else
    turn = static_cast<float>(4.0 + green - red);
  turn = static_cast<float>(std::fmod(turn / 6.0 + 1.0, 1.0));
  const int hue = (std::clamp(static_cast<int>(turn * 255.0), 0, 255) + step) & 255;
  const int saturation = std::clamp(static_cast<int>(range / static_cast<float>(most) * 255.0), 0, 255);
  if (saturation == 0) return {static_cast<uint8_t>(most), static_cast<uint8_t>(most), static_cast<uint8_t>(most)};
  const double sixths = static_cast<float>(hue) * 6.0 / 255.0;
  const auto sector = static_cast<int>(std::floor(sixths));
  const auto part = static_cast<float>(sixths - sector);
  const auto share = static_cast<float>(static_cast<float>(saturation) / 255.0);
  const auto level = [&](double less) {
    return static_cast<uint8_t>(std::round(static_cast<float>(most) * (1.0 - less)));
  };
  const uint8_t p = level(share), q = level(share * part), t = level(share * (1.0 - part));
  const auto v = static_cast<uint8_t>(most);
  switch (sector % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

TEST(Hue, OfEveryColourIsThatOfOneColourAtATime) {
  Image all = black_image(256, 256, 3);
  for (const double shift : {-0.5, -0.21, 0.0, 0.1, 0.5})
    for (int red = shift == 0.1 ? 0 : static_cast<int>(random_bytes(1)[0] % 16); red < 256;
         red += shift == 0.1 ? 1 : 16) {
      for (int at = 0; at < 256 * 256; ++at) {
        all.pixels[3 * at] = static_cast<uint8_t>(red);
        all.pixels[3 * at + 1] = static_cast<uint8_t>(at >> 8);
        all.pixels[3 * at + 2] = static_cast<uint8_t>(at);
      }
      const Image got = hue(all, shift);
      int wrong = 0;
      for (int at = 0; at < 256 * 256; ++at) {
        const uint8_t *from = &all.pixels[3 * at], *to = &got.pixels[3 * at];
        const Rgb expected = turned({from[0], from[1], from[2]}, static_cast<uint8_t>(static_cast<int>(shift * 255)));
        wrong += Rgb{to[0], to[1], to[2]} != expected;
      }
      ASSERT_EQ(wrong, 0) << "red " << red << ", shift " << shift;
    }
}

TEST(Hue, LeavesAFourthChannelAndWhatIsNoBlock) {
  for (const int64_t width : {1, 63, 64, 65, 130}) {
    const Image from{random_bytes(static_cast<size_t>(width * 4)), 1, width, 4, 5};
    const Image to = hue(from, 0.3);
    for (int64_t x = 0; x < width; ++x) {
      const uint8_t *a = &from.pixels[4 * x], *b = &to.pixels[4 * x];
      EXPECT_EQ((Rgb{b[0], b[1], b[2]}), turned({a[0], a[1], a[2]}, static_cast<int>(0.3 * 255)));
      EXPECT_EQ(b[3], a[3]);
    }
  }
  const Image grey{random_bytes(12), 3, 4, 1, 5};
  EXPECT_EQ(hue(grey, 0.3).pixels, grey.pixels);
}

}  // namespace
}  // namespace weft::data::testing
