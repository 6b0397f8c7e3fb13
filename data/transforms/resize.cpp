// SPDX-License-Identifier: Apache-2.0
// Two passes over bytes: rows become as wide as the result, then columns as high. GCC and Clang turn the vector types
// below into the instructions of any machine.
#include "data/transforms/resize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/error.h"

namespace weft::data {
namespace {

using Ints4 = int32_t __attribute__((vector_size(16)));
using Bytes16 = uint8_t __attribute__((vector_size(16)));

constexpr int32_t kHalf = 1 << (kTapBits - 1);
constexpr Ints4 kHalves = {kHalf, kHalf, kHalf, kHalf};

static_assert(std::endian::native == std::endian::little, "the low byte of a number comes first");

/// The next four bytes as numbers. A load and a shuffle; written byte by byte it becomes four loads.
Ints4 widen(const uint8_t* from) {
  uint32_t four = 0;
  std::memcpy(&four, from, sizeof four);
  using Words4 = uint32_t __attribute__((vector_size(16)));
  const auto bytes = reinterpret_cast<Bytes16>(Words4{four, 0, 0, 0});
  return reinterpret_cast<Ints4>(__builtin_shufflevector(bytes, bytes, 0, 4, 4, 4, 1, 4, 4, 4, 2, 4, 4, 4, 3, 4, 4, 4));
}

/// The four sums, rounded and held to 0 … 255, as bytes.
void store(Ints4 sums, uint8_t* to) {
  constexpr Ints4 kLeast = {0, 0, 0, 0}, kMost = {255, 255, 255, 255};
  sums >>= kTapBits;
  sums = sums < kLeast ? kLeast : sums;
  sums = sums > kMost ? kMost : sums;
  const auto bytes = reinterpret_cast<Bytes16>(sums);
  const Bytes16 low =
      __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  std::memcpy(to, &low, 4);
}

uint8_t to_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kTapBits, 0, 255)); }

/// A pixel's channels are worked out as four, whatever they are: reads and writes up to kSlack bytes after the row.
constexpr int64_t kSlack = 4;

template <int Channels>
void resample_row(const uint8_t* from, uint8_t* to, const Taps& taps) {
  for (const Taps::Span& span : taps.spans) {
    Ints4 sums = kHalves;
    const uint8_t* pixel = from + span.first * Channels;
    const int32_t* weights = taps.weights.data() + span.at;
    for (int64_t t = 0; t < span.count; ++t, pixel += Channels) sums += weights[t] * widen(pixel);
    store(sums, to);
    to += Channels;
  }
}

/// Rows of bytes with a distance between them.
struct Rows {
  const uint8_t* first = nullptr;
  int64_t stride = 0;
  const uint8_t* row(int64_t y) const { return first + y * stride; }
};

/// A row of `bytes` bytes from the span's rows.
void resample_column(const Rows& from, const Taps::Span& span, const int32_t* weights, uint8_t* to, int64_t bytes) {
  constexpr int64_t kStep = 16;
  int64_t i = 0;
  for (; i + kStep <= bytes; i += kStep) {
    Ints4 a = kHalves, b = kHalves, c = kHalves, d = kHalves;
    const uint8_t* at = from.row(span.first) + i;
    for (int64_t t = 0; t < span.count; ++t, at += from.stride) {
      a += weights[t] * widen(at);
      b += weights[t] * widen(at + 4);
      c += weights[t] * widen(at + 8);
      d += weights[t] * widen(at + 12);
    }
    store(a, to + i), store(b, to + i + 4), store(c, to + i + 8), store(d, to + i + 12);
  }
  for (; i < bytes; ++i) {
    int32_t sum = kHalf;
    for (int64_t t = 0; t < span.count; ++t) sum += weights[t] * from.row(span.first + t)[i];
    to[i] = to_byte(sum);
  }
}

/// Rows between the two passes. Kept for the thread's next image, unless they are many: memory from the system is
/// slow at its first touch.
class Between {
 public:
  explicit Between(int64_t bytes) {
    if (bytes_.size() < static_cast<size_t>(bytes)) bytes_.resize(static_cast<size_t>(bytes));
  }
  ~Between() {
    constexpr size_t kKept = size_t{4} << 20;
    if (bytes_.size() > kKept) bytes_ = {};
  }
  Between(const Between&) = delete;
  Between& operator=(const Between&) = delete;

  uint8_t* data() { return bytes_.data(); }

 private:
  static thread_local std::vector<uint8_t> bytes_;
};
thread_local std::vector<uint8_t> Between::bytes_;

/// The window's rows, each resampled to `width` pixels, with kSlack bytes or more between them.
Rows resample_rows(const Image& image, const Window& window, int64_t width, Filter filter, Between& between) {
  const int64_t channels = image.channels, stride = width * channels + kSlack;
  const Taps taps = make_taps(window.width, width, filter);
  constexpr decltype(&resample_row<1>) kRows[] = {resample_row<1>, resample_row<2>, resample_row<3>, resample_row<4>};
  const auto resample = kRows[channels - 1];
  const uint8_t* const end = image.pixels.data() + image.pixels.size();
  std::vector<uint8_t> last;  // a row without slack after it, with some
  for (int64_t y = 0; y < window.height; ++y) {
    const uint8_t* row = image.row(window.top + y) + window.left * channels;
    const int64_t bytes = window.width * channels;
    if (end - row < bytes + kSlack) {
      last.assign(row, row + bytes);
      last.resize(static_cast<size_t>(bytes + kSlack));
      row = last.data();
    }
    resample(row, between.data() + y * stride, taps);
  }
  return {between.data(), stride};
}

}  // namespace

Image resize(const Image& image, const Window& window, int64_t height, int64_t width, Filter filter) {
  WEFT_CHECK(height > 0 && width > 0, "resize: expected a size of at least 1x1, got ", height, "x", width);
  WEFT_CHECK(image.height > 0 && image.width > 0 && image.channels >= 1 && image.channels <= 4,
             "resize: expected an image of at least 1x1 with 1 to 4 channels, got ", image.height, "x", image.width,
             "x", image.channels);
  WEFT_CHECK(window.height > 0 && window.width > 0 && window.top >= 0 && window.left >= 0 &&
                 window.top + window.height <= image.height && window.left + window.width <= image.width,
             "resize: expected a window in the image of ", image.height, "x", image.width, ", got ", window.height, "x",
             window.width, " at ", window.top, ", ", window.left);
  const int64_t channels = image.channels, bytes = width * channels;
  const bool wide = width != window.width, high = height != window.height;
  if (!wide && !high) return crop(image, window.top, window.left, height, width);
  Between between(wide ? window.height * (bytes + kSlack) : 0);
  const Rows rows = wide ? resample_rows(image, window, width, filter, between)
                         : Rows{image.row(window.top) + window.left * channels, image.width * channels};
  Image out = black_image(height, width, channels, image.label);
  if (!high) {
    for (int64_t y = 0; y < height; ++y) std::memcpy(out.row(y), rows.row(y), static_cast<size_t>(bytes));
    return out;
  }
  const Taps taps = make_taps(window.height, height, filter);
  for (int64_t y = 0; y < height; ++y)
    resample_column(rows, taps.spans[y], taps.weights.data() + taps.spans[y].at, out.row(y), bytes);
  return out;
}

Image resize(const Image& image, int64_t height, int64_t width, Filter filter) {
  if (height == image.height && width == image.width) return image;
  return resize(image, {0, 0, image.height, image.width}, height, width, filter);
}

Image resize_shortest_edge(const Image& image, int64_t edge, Filter filter) {
  const int64_t shorter = std::min(image.height, image.width), longer = std::max(image.height, image.width);
  WEFT_CHECK(shorter > 0, "resize_shortest_edge: expected an image of at least 1x1, got ", image.height, "x",
             image.width);
  const int64_t other = edge * longer / shorter;
  return image.height <= image.width ? resize(image, edge, other, filter) : resize(image, other, edge, filter);
}

namespace {

double weight(Filter filter, double t) {
  t = std::abs(t);
  if (filter == Filter::bilinear) return t < 1 ? 1 - t : 0;
  constexpr double a = -0.5;
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return (((t - 5) * t + 8) * t - 4) * a;
  return 0;
}

}  // namespace

Taps make_taps(int64_t in, int64_t out, Filter filter) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double stretch = std::max(scale, 1.0);
  const double reach = (filter == Filter::bilinear ? 1.0 : 2.0) * stretch;
  Taps taps;
  taps.spans.reserve(static_cast<size_t>(out));
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
    taps.spans.push_back({first, end - first, static_cast<int64_t>(taps.weights.size())});
    for (const double w : weights) taps.weights.push_back(static_cast<int32_t>(std::lround(w / sum * (1 << kTapBits))));
  }
  return taps;
}

Window random_window(int64_t height, int64_t width, const RandomResizedCropOptions& o, Draw& draw) {
  WEFT_CHECK(o.least_area > 0 && o.least_area <= o.most_area && o.least_ratio > 0 && o.least_ratio <= o.most_ratio,
             "random_resized_crop: expected 0 < least <= most, got areas ", o.least_area, " to ", o.most_area,
             " and ratios ", o.least_ratio, " to ", o.most_ratio);
  const auto area = static_cast<double>(height * width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * draw.uniform(o.least_area, o.most_area);
    const double ratio = std::exp(draw.uniform(std::log(o.least_ratio), std::log(o.most_ratio)));
    const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted * ratio)));
    const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted / ratio)));
    if (w > 0 && w <= width && h > 0 && h <= height)
      return {draw.below(height - h + 1), draw.below(width - w + 1), h, w};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  int64_t h = height, w = width;
  if (ratio < o.least_ratio) h = static_cast<int64_t>(std::nearbyint(static_cast<double>(width) / o.least_ratio));
  if (ratio > o.most_ratio) w = static_cast<int64_t>(std::nearbyint(static_cast<double>(height) * o.most_ratio));
  h = std::max<int64_t>(h, 1), w = std::max<int64_t>(w, 1);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

Image random_resized_crop(const Image& image, const RandomResizedCropOptions& options, Draw& draw) {
  const Window window = random_window(image.height, image.width, options, draw);
  return resize(image, window, options.height, options.width, options.filter);
}

}  // namespace weft::data
