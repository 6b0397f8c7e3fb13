// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/resize.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "data/transforms/taps.h"
#include "kernels/error.h"

// Two passes over bytes: rows become as wide as the result, then columns as high. GCC and Clang turn the vector types
// below into the instructions of any machine.

namespace weft::data {
namespace {

using Ints4 = int32_t __attribute__((vector_size(16)));
using Bytes16 = uint8_t __attribute__((vector_size(16)));

constexpr int32_t kHalf = 1 << (kTapBits - 1);
constexpr Ints4 kHalves = {kHalf, kHalf, kHalf, kHalf};

static_assert(std::endian::native == std::endian::little, "the low byte of a number comes first");

/// The next four bytes as numbers. One load and one shuffle; written byte by byte it becomes four loads.
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

/// A pixel's channels are worked out as four, whatever they are: reads and writes up to kSlack bytes behind the row.
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

/// One row of `bytes` bytes out of those that the span names.
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

/// Rows between the two passes. Kept for the thread's next picture, unless they are many: memory from the system is
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
Rows resample_rows(const Picture& picture, const Window& window, int64_t width, Filter filter, Between& between) {
  const int64_t channels = picture.channels, stride = width * channels + kSlack;
  const Taps taps = make_taps(window.width, width, filter);
  constexpr decltype(&resample_row<1>) kRows[] = {resample_row<1>, resample_row<2>, resample_row<3>, resample_row<4>};
  const auto resample = kRows[channels - 1];
  const uint8_t* const end = picture.pixels.data() + picture.pixels.size();
  std::vector<uint8_t> last;  // a row without slack behind it, with some
  for (int64_t y = 0; y < window.height; ++y) {
    const uint8_t* row = picture.row(window.top + y) + window.left * channels;
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

Picture resize(const Picture& picture, const Window& window, int64_t height, int64_t width, Filter filter) {
  WEFT_CHECK(height > 0 && width > 0, "resize: expected a size of at least 1x1, got ", height, "x", width);
  WEFT_CHECK(picture.height > 0 && picture.width > 0 && picture.channels >= 1 && picture.channels <= 4,
             "resize: expected a picture of at least 1x1 with 1 to 4 channels, got ", picture.height, "x",
             picture.width, "x", picture.channels);
  WEFT_CHECK(window.height > 0 && window.width > 0 && window.top >= 0 && window.left >= 0 &&
                 window.top + window.height <= picture.height && window.left + window.width <= picture.width,
             "resize: expected a window in the picture of ", picture.height, "x", picture.width, ", got ",
             window.height, "x", window.width, " at ", window.top, ", ", window.left);
  const int64_t channels = picture.channels, bytes = width * channels;
  const bool wide = width != window.width, high = height != window.height;
  if (!wide && !high) return crop(picture, window.top, window.left, height, width);
  Between between(wide ? window.height * (bytes + kSlack) : 0);
  const Rows rows = wide ? resample_rows(picture, window, width, filter, between)
                         : Rows{picture.row(window.top) + window.left * channels, picture.width * channels};
  Picture out = black_picture(height, width, channels, picture.label);
  if (!high) {
    for (int64_t y = 0; y < height; ++y) std::memcpy(out.row(y), rows.row(y), static_cast<size_t>(bytes));
    return out;
  }
  const Taps taps = make_taps(window.height, height, filter);
  for (int64_t y = 0; y < height; ++y)
    resample_column(rows, taps.spans[y], taps.weights.data() + taps.spans[y].at, out.row(y), bytes);
  return out;
}

Picture resize(const Picture& picture, int64_t height, int64_t width, Filter filter) {
  if (height == picture.height && width == picture.width) return picture;
  return resize(picture, {0, 0, picture.height, picture.width}, height, width, filter);
}

Picture resize_shortest_edge(const Picture& picture, int64_t edge, Filter filter) {
  const int64_t shorter = std::min(picture.height, picture.width), longer = std::max(picture.height, picture.width);
  WEFT_CHECK(shorter > 0, "resize_shortest_edge: expected a picture of at least 1x1, got ", picture.height, "x",
             picture.width);
  const int64_t other = edge * longer / shorter;
  return picture.height <= picture.width ? resize(picture, edge, other, filter) : resize(picture, other, edge, filter);
}

}  // namespace weft::data
