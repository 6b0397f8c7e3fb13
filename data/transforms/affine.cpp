// SPDX-License-Identifier: Apache-2.0
// Built with -ffp-contract=off: a fused multiply-add rounds once where Pillow rounds twice.
#include "data/transforms/affine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/error.h"

namespace weft::data {
namespace {

int64_t fixed(double value) { return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5)); }

template <int Channels>
void sample_nearest(const Image& from, Image& to, const AffineMatrix& m) {
  const int64_t a = fixed(m.a), b = fixed(m.b), d = fixed(m.d), e = fixed(m.e);
  int64_t row_u = fixed(m.c + m.a * 0.5 + m.b * 0.5), row_v = fixed(m.f + m.d * 0.5 + m.e * 0.5);
  for (int64_t y = 0; y < to.height; ++y, row_u += b, row_v += e) {
    uint8_t* pixel = to.row(y);
    int64_t u = row_u, v = row_v;
    for (int64_t x = 0; x < to.width; ++x, u += a, v += d, pixel += Channels) {
      const int64_t column = u >> 16, row = v >> 16;
      if (column < 0 || column >= from.width || row < 0 || row >= from.height) continue;
      const uint8_t* source = from.row(row) + column * Channels;
      for (int c = 0; c < Channels; ++c) pixel[c] = source[c];
    }
  }
}

template <int Channels>
void sample_bilinear(const Image& from, Image& to, const AffineMatrix& m) {
  const auto width = static_cast<double>(from.width), height = static_cast<double>(from.height);
  for (int64_t y = 0; y < to.height; ++y) {
    uint8_t* pixel = to.row(y);
    for (int64_t x = 0; x < to.width; ++x, pixel += Channels) {
      const double at_x = static_cast<double>(x) + 0.5, at_y = static_cast<double>(y) + 0.5;
      const double u = m.a * at_x + m.b * at_y + m.c, v = m.d * at_x + m.e * at_y + m.f;
      if (u < 0 || u >= width || v < 0 || v >= height) continue;
      const double left_edge = std::floor(u - 0.5), top_edge = std::floor(v - 0.5);
      const double du = u - 0.5 - left_edge, dv = v - 0.5 - top_edge;
      const auto left = static_cast<int64_t>(left_edge), top = static_cast<int64_t>(top_edge);
      const int64_t near_x = std::max<int64_t>(left, 0), far_x = std::min(left + 1, from.width - 1);
      const uint8_t* upper = from.row(std::max<int64_t>(top, 0));
      const uint8_t* lower = from.row(std::min(top + 1, from.height - 1));
      const auto across = [&](const uint8_t* row, int c) {
        const int first = row[near_x * Channels + c];
        return first + (row[far_x * Channels + c] - first) * du;
      };
      for (int c = 0; c < Channels; ++c) {
        const double above = across(upper, c), below = across(lower, c);
        pixel[c] = static_cast<uint8_t>(above + (below - above) * dv);
      }
    }
  }
}

/// To 15 decimals, so that quarter turns have a sine and cosine of exactly 0 and hit pixel centres.
double to_15_decimals(double value) { return static_cast<double>(std::round(value * 1e15L) / 1e15L); }

}  // namespace

Image filled(const Image& like, const Fill& fill) {
  const auto channels = static_cast<size_t>(like.channels);
  WEFT_CHECK(fill.empty() || fill.size() == channels, "affine: expected a fill of ", channels, " channels, got ",
             fill.size());
  Image out = black_image(like.height, like.width, like.channels, like.label);
  if (std::any_of(fill.begin(), fill.end(), [](uint8_t byte) { return byte != 0; }))
    for (size_t i = 0; i < out.pixels.size(); ++i) out.pixels[i] = fill[i % channels];
  return out;
}

Image affine(const Image& image, const AffineMatrix& matrix, const AffineOptions& options) {
  WEFT_CHECK(image.channels >= 1 && image.channels <= 4, "affine: expected an image of 1 to 4 channels, got ",
             image.channels);
  Image out = filled(image, options.fill);
  using Sample = void (*)(const Image&, Image&, const AffineMatrix&);
  constexpr Sample kNearest[] = {sample_nearest<1>, sample_nearest<2>, sample_nearest<3>, sample_nearest<4>};
  constexpr Sample kBilinear[] = {sample_bilinear<1>, sample_bilinear<2>, sample_bilinear<3>, sample_bilinear<4>};
  (options.sampling == Sampling::nearest ? kNearest : kBilinear)[image.channels - 1](image, out, matrix);
  return out;
}

Image rotate(const Image& image, double degrees, const AffineOptions& options) {
  const double angle = -(degrees - 360 * std::floor(degrees / 360)) * (std::numbers::pi / 180);
  const double cosine = to_15_decimals(std::cos(angle)), sine = to_15_decimals(std::sin(angle));
  const double x = static_cast<double>(image.width) / 2, y = static_cast<double>(image.height) / 2;
  const AffineMatrix matrix{.a = cosine,
                            .b = sine,
                            .c = cosine * -x + sine * -y + x,
                            .d = -sine,
                            .e = cosine,
                            .f = -sine * -x + cosine * -y + y};
  return affine(image, matrix, options);
}

Image shear_x(const Image& image, double slope, const AffineOptions& options) {
  return affine(image, {.b = slope}, options);
}

Image shear_y(const Image& image, double slope, const AffineOptions& options) {
  return affine(image, {.d = slope}, options);
}

Image translate(const Image& image, int64_t right, int64_t down, const Fill& fill) {
  Image out = filled(image, fill);
  const int64_t first_x = std::max<int64_t>(0, right), end_x = std::min(image.width, image.width + right);
  if (first_x >= end_x) return out;
  const auto bytes = static_cast<size_t>((end_x - first_x) * image.channels);
  for (int64_t y = std::max<int64_t>(0, down); y < std::min(image.height, image.height + down); ++y)
    std::memcpy(out.row(y) + first_x * image.channels, image.row(y - down) + (first_x - right) * image.channels, bytes);
  return out;
}

}  // namespace weft::data
