// SPDX-License-Identifier: Apache-2.0
// Built with -ffp-contract=off: a fused multiply-add rounds once where Pillow rounds twice.
#include "data/transforms/affine.h"

#include <algorithm>
#include <cmath>

#include "kernels/error.h"

namespace weft::data {
namespace {

int64_t fixed(double value) { return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5)); }

template <int Channels>
void sample_nearest(const Picture& from, Picture& to, const AffineMatrix& m) {
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
void sample_bilinear(const Picture& from, Picture& to, const AffineMatrix& m) {
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

}  // namespace

Picture filled(const Picture& like, const Fill& fill) {
  const auto channels = static_cast<size_t>(like.channels);
  WEFT_CHECK(fill.empty() || fill.size() == channels, "affine: expected a fill of ", channels, " channels, got ",
             fill.size());
  Picture out = black_picture(like.height, like.width, like.channels, like.label);
  if (std::any_of(fill.begin(), fill.end(), [](uint8_t byte) { return byte != 0; }))
    for (size_t i = 0; i < out.pixels.size(); ++i) out.pixels[i] = fill[i % channels];
  return out;
}

Picture affine(const Picture& picture, const AffineMatrix& matrix, const AffineOptions& options) {
  WEFT_CHECK(picture.channels >= 1 && picture.channels <= 4, "affine: expected a picture of 1 to 4 channels, got ",
             picture.channels);
  Picture out = filled(picture, options.fill);
  using Sample = void (*)(const Picture&, Picture&, const AffineMatrix&);
  constexpr Sample kNearest[] = {sample_nearest<1>, sample_nearest<2>, sample_nearest<3>, sample_nearest<4>};
  constexpr Sample kBilinear[] = {sample_bilinear<1>, sample_bilinear<2>, sample_bilinear<3>, sample_bilinear<4>};
  (options.sampling == Sampling::nearest ? kNearest : kBilinear)[picture.channels - 1](picture, out, matrix);
  return out;
}

}  // namespace weft::data
