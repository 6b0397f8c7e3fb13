// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

// What the emulated driver writes into the 128 opaque bytes of a tensor map, and what a load or a store reads there.

namespace weft::emulator {

/// As wgmma's matrix descriptors number them.
enum class SwizzleMode : uint8_t { none = 0, bytes128 = 1, bytes64 = 2, bytes32 = 3 };

/// Bytes of a swizzled line (16 without a swizzle).
constexpr int swizzle_bytes(SwizzleMode mode) { return mode == SwizzleMode::none ? 16 : 256 >> static_cast<int>(mode); }
/// After how many bytes the pattern repeats, and what a tile is aligned to.
constexpr uintptr_t swizzle_pattern(SwizzleMode mode) { return static_cast<uintptr_t>(swizzle_bytes(mode)) * 8; }

/// Where the hardware puts the byte that would be at `address` without a swizzle: bits 4 and up take in bits 7 and up.
constexpr uintptr_t swizzled(uintptr_t address, SwizzleMode mode, uintptr_t base_offset = 0) {
  if (mode == SwizzleMode::none) return address;
  const uintptr_t lines = static_cast<uintptr_t>(swizzle_bytes(mode)) / 16 - 1;
  return address ^ ((((address >> 7) - base_offset) & lines) << 4);
}

struct TensorBox {
  static constexpr uint64_t kMagic = 0x70616d726f736e65;

  uint64_t magic;
  uint64_t data;
  uint64_t strides[4];     ///< bytes, of dimensions 1, 2, …
  uint32_t last_index[5];  ///< sizes less 1
  uint16_t box[5];         ///< elements; im2col: channels, then pixels
  int16_t lower[3], upper[3];
  uint8_t steps[5];  ///< elements from one that is loaded to the next
  uint8_t rank, element_bytes;
  SwizzleMode swizzle;
  bool im2col, nan_fill;
  bool tf32;  ///< loads round f32

  int64_t size(int dimension) const { return int64_t{last_index[dimension]} + 1; }
  /// Elements that arrive along a dimension of a tiled box.
  int count(int dimension) const {
    return dimension == 0 ? box[0] : (box[dimension] + steps[dimension] - 1) / steps[dimension];
  }
  int line_bytes() const { return box[0] * element_bytes; }
  int lines() const {
    if (im2col) return box[1];
    int lines = 1;
    for (int d = 1; d < rank; ++d) lines *= count(d);
    return lines;
  }
  int bytes() const { return line_bytes() * lines(); }
};
static_assert(sizeof(TensorBox) <= 128);

/// Innermost first; the offsets of an im2col load behind them.
struct BoxPlace {
  std::array<int, 5> at;
  std::array<int, 3> offset;
};

/// One line of a box: the elements that are in the tensor, and where they lie.
struct BoxLine {
  uintptr_t data;  ///< of element `begin`
  int begin, end;
};

/// Calls visit(line number, BoxLine) for each line of the box; begin == end where the line is outside of the tensor.
template <class Visit>
void for_each_line(const TensorBox& box, const BoxPlace& place, Visit&& visit);

namespace detail {

inline BoxLine line_at(const TensorBox& box, int first, const std::array<int64_t, 5>& at) {
  const int64_t size = box.size(0), begin = first < 0 ? -int64_t{first} : 0;
  const int64_t end = size - first < box.box[0] ? size - first : box.box[0];
  uint64_t data = box.data + static_cast<uint64_t>((first + begin) * box.element_bytes);
  for (int d = 1; d < box.rank; ++d) {
    if (at[static_cast<size_t>(d)] < 0 || at[static_cast<size_t>(d)] >= box.size(d)) return {0, 0, 0};
    data += static_cast<uint64_t>(at[static_cast<size_t>(d)]) * box.strides[d - 1];
  }
  if (begin >= end) return {0, 0, 0};
  return {data, static_cast<int>(begin), static_cast<int>(end)};
}

}  // namespace detail

template <class Visit>
void for_each_line(const TensorBox& box, const BoxPlace& place, Visit&& visit) {
  const int lines = box.lines();
  std::array<int64_t, 5> at{};
  if (!box.im2col) {
    std::array<int, 5> i{};
    for (int line = 0; line < lines; ++line) {
      for (int d = 1; d < box.rank; ++d) {
        const size_t k = static_cast<size_t>(d);
        at[k] = int64_t{place.at[k]} + int64_t{i[k]} * box.steps[d];
      }
      visit(line, detail::line_at(box, place.at[0], at));
      for (int d = 1; d < box.rank && ++i[static_cast<size_t>(d)] == box.count(d); ++d) i[static_cast<size_t>(d)] = 0;
    }
    return;
  }
  // Pixels of the box of corners: along W, then H (and D), then to the next picture.
  const int spatial = box.rank - 2;
  for (int d = 1; d < box.rank; ++d) at[static_cast<size_t>(d)] = place.at[static_cast<size_t>(d)];
  for (int line = 0; line < lines; ++line) {
    auto pixel = at;
    for (int s = 0; s < spatial; ++s) pixel[static_cast<size_t>(s) + 1] += place.offset[static_cast<size_t>(s)];
    visit(line, detail::line_at(box, place.at[0], pixel));
    int s = 0;
    for (; s < spatial; ++s) {
      int64_t& x = at[static_cast<size_t>(s) + 1];
      x += box.steps[s + 1];
      if (x < box.size(s + 1) + box.upper[s]) break;
      x = box.lower[s];
    }
    if (s == spatial) ++at[static_cast<size_t>(spatial) + 1];
  }
}

}  // namespace weft::emulator
