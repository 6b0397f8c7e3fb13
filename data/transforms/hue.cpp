// SPDX-License-Identifier: Apache-2.0
// Built with -ffp-contract=off: a fused multiply-add rounds once where Pillow rounds twice.
#include "data/transforms/hue.h"

#include <algorithm>

#include "kernels/error.h"

namespace weft::data {
namespace {

struct Hsv {
  uint8_t hue = 0, saturation = 0, value = 0;
};

uint8_t to_byte(double value) { return static_cast<uint8_t>(std::clamp(static_cast<int>(value), 0, 255)); }

/// Half up; as std::round for what is not negative, without its call.
int rounded(double value) {
  const int whole = static_cast<int>(value);
  return whole + (value - whole >= 0.5 ? 1 : 0);
}

Hsv to_hsv(const uint8_t* rgb) {
  const auto [least, most] = std::minmax({rgb[0], rgb[1], rgb[2]});
  if (least == most) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  const auto below = [&](int c) { return static_cast<float>(most - rgb[c]) / range; };
  const float red = below(0), green = below(1), blue = below(2);
  float turn;  // in sixths of a turn
  if (rgb[0] == most)
    turn = blue - green;
  else if (rgb[1] == most)
    turn = static_cast<float>(2.0 + red - blue);
  else
    turn = static_cast<float>(4.0 + green - red);
  const double turns = turn / 6.0 + 1.0;  // 5/6 to 11/6: what is above one whole turn is left
  turn = static_cast<float>(turns < 1 ? turns : turns - 1);
  return {to_byte(turn * 255.0), to_byte(range / static_cast<float>(most) * 255.0), most};
}

void to_rgb(const Hsv& hsv, uint8_t* rgb) {
  const uint8_t v = hsv.value;
  if (hsv.saturation == 0) {
    rgb[0] = rgb[1] = rgb[2] = v;
    return;
  }
  const double sixths = static_cast<float>(hsv.hue) * 6.0 / 255.0;
  const auto sector = static_cast<int>(sixths);
  const auto part = static_cast<float>(sixths - sector);
  const auto saturation = static_cast<float>(static_cast<float>(hsv.saturation) / 255.0);
  const auto level = [&](double share) { return static_cast<uint8_t>(rounded(static_cast<float>(v) * (1.0 - share))); };
  const uint8_t p = level(saturation), q = level(saturation * part), t = level(saturation * (1.0 - part));
  const uint8_t sectors[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(sectors[sector % 6], 3, rgb);
}

}  // namespace

Picture hue(Picture picture, double shift) {
  WEFT_CHECK(shift >= -0.5 && shift <= 0.5, "hue: expected a shift from -0.5 to 0.5, got ", shift);
  if (picture.channels < 3) return picture;
  const auto step = static_cast<uint8_t>(static_cast<int>(shift * 255));  // wraps, as a turn does
  for (size_t i = 0; i < picture.pixels.size(); i += static_cast<size_t>(picture.channels)) {
    Hsv hsv = to_hsv(&picture.pixels[i]);
    hsv.hue = static_cast<uint8_t>(hsv.hue + step);
    to_rgb(hsv, &picture.pixels[i]);
  }
  return picture;
}

}  // namespace weft::data
