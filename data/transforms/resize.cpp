// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/resize.h"

#include <algorithm>
#include <cmath>

#include "kernels/error.h"

namespace weft::data {
namespace {

constexpr int kFractionBits = 22;

double weight(Filter filter, double t) {
  t = std::abs(t);
  if (filter == Filter::bilinear) return t < 1 ? 1 - t : 0;
  constexpr double a = -0.5;
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return (((t - 5) * t + 8) * t - 4) * a;
  return 0;
}

/// Which inputs an output pixel takes, and how much of each, in fixed point.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

std::vector<Taps> make_taps(int64_t in, int64_t out, Filter filter) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double stretch = std::max(scale, 1.0);
  const double reach = (filter == Filter::bilinear ? 1.0 : 2.0) * stretch;
  std::vector<Taps> all(static_cast<size_t>(out));
  std::vector<double> weights;
  for (int64_t o = 0; o < out; ++o) {
    const double centre = (static_cast<double>(o) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - reach + 0.5));
    const int64_t end = std::min(in, static_cast<int64_t>(centre + reach + 0.5));
    weights.clear();
    double sum = 0;
    for (int64_t i = first; i < end; ++i) {
      weights.push_back(weight(filter, (static_cast<double>(i) - centre + 0.5) / stretch));
      sum += weights.back();
    }
    all[o].first = first;
    for (const double w : weights)
      all[o].weights.push_back(static_cast<int32_t>(std::lround(w / sum * (1 << kFractionBits))));
  }
  return all;
}

uint8_t to_byte(int32_t fixed) { return static_cast<uint8_t>(std::clamp(fixed >> kFractionBits, 0, 255)); }

constexpr int32_t kHalf = 1 << (kFractionBits - 1);

template <int Channels>
void resize_row(const uint8_t* from, uint8_t* to, const std::vector<Taps>& taps) {
  for (const Taps& tap : taps) {
    int32_t sum[Channels];
    std::fill(sum, sum + Channels, kHalf);
    const uint8_t* pixel = from + tap.first * Channels;
    for (const int32_t w : tap.weights)
      for (int c = 0; c < Channels; ++c) sum[c] += w * *pixel++;
    for (int c = 0; c < Channels; ++c) *to++ = to_byte(sum[c]);
  }
}

Picture resize_width(const Picture& picture, int64_t width, Filter filter) {
  const std::vector<Taps> taps = make_taps(picture.width, width, filter);
  Picture out = black_picture(picture.height, width, picture.channels, picture.label);
  constexpr decltype(&resize_row<1>) kRows[] = {resize_row<1>, resize_row<2>, resize_row<3>, resize_row<4>};
  const auto row = kRows[picture.channels - 1];
  for (int64_t y = 0; y < picture.height; ++y) row(picture.row(y), out.row(y), taps);
  return out;
}

Picture resize_height(const Picture& picture, int64_t height, Filter filter) {
  const std::vector<Taps> taps = make_taps(picture.height, height, filter);
  Picture out = black_picture(height, picture.width, picture.channels, picture.label);
  const int64_t row_bytes = picture.width * picture.channels;
  std::vector<int32_t> sums(static_cast<size_t>(row_bytes));
  for (int64_t y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (size_t t = 0; t < taps[y].weights.size(); ++t) {
      const int32_t w = taps[y].weights[t];
      const uint8_t* from = picture.row(taps[y].first + static_cast<int64_t>(t));
      for (int64_t i = 0; i < row_bytes; ++i) sums[i] += w * from[i];
    }
    uint8_t* to = out.row(y);
    for (int64_t i = 0; i < row_bytes; ++i) to[i] = to_byte(sums[i]);
  }
  return out;
}

}  // namespace

Picture resize(const Picture& picture, int64_t height, int64_t width, Filter filter) {
  WEFT_CHECK(height > 0 && width > 0, "resize: expected a size of at least 1x1, got ", height, "x", width);
  WEFT_CHECK(picture.height > 0 && picture.width > 0 && picture.channels >= 1 && picture.channels <= 4,
             "resize: expected a picture of at least 1x1 with 1 to 4 channels, got ", picture.height, "x",
             picture.width, "x", picture.channels);
  const bool wide = width != picture.width, high = height != picture.height;
  if (!wide && !high) return picture;
  if (!wide) return resize_height(picture, height, filter);
  Picture out = resize_width(picture, width, filter);
  return high ? resize_height(out, height, filter) : out;
}

Picture resize_shortest_edge(const Picture& picture, int64_t edge, Filter filter) {
  const int64_t shorter = std::min(picture.height, picture.width), longer = std::max(picture.height, picture.width);
  WEFT_CHECK(shorter > 0, "resize_shortest_edge: expected a picture of at least 1x1, got ", picture.height, "x",
             picture.width);
  const int64_t other = edge * longer / shorter;
  return picture.height <= picture.width ? resize(picture, edge, other, filter) : resize(picture, other, edge, filter);
}

}  // namespace weft::data
