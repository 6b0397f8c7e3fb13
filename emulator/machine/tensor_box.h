// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The 128 opaque bytes of a tensor map, as the emulated driver writes them and TMA reads them.

namespace emulator {

/// As wgmma's matrix descriptors number them.
enum class SwizzleMode : uint8_t { none = 0, bytes128 = 1, bytes64 = 2, bytes32 = 3 };

/// Bytes of a swizzled line (16 without a swizzle).
constexpr int swizzle_bytes(SwizzleMode mode) { return mode == SwizzleMode::none ? 16 : 256 >> static_cast<int>(mode); }
/// After how many bytes the pattern repeats.
constexpr uint64_t swizzle_pattern(SwizzleMode mode) { return static_cast<uint64_t>(swizzle_bytes(mode)) * 8; }

/// Where the hardware puts the byte that would be at `address` without a swizzle: bits 4 and up take in bits 7 and up.
constexpr uint64_t swizzled(uint64_t address, SwizzleMode mode, uint64_t base_offset = 0) {
  if (mode == SwizzleMode::none) return address;
  const uint64_t lines = static_cast<uint64_t>(swizzle_bytes(mode)) / 16 - 1;
  return address ^ ((((address >> 7) - base_offset) & lines) << 4);
}

/// As CUtensorMapDataType numbers them.
enum class TensorType : uint8_t { u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32_ftz, tf32, tf32_ftz };
constexpr int kTensorTypes = 13;

constexpr int bytes_of(TensorType type) {
  switch (type) {
    case TensorType::u8:
      return 1;
    case TensorType::u16:
    case TensorType::f16:
    case TensorType::bf16:
      return 2;
    case TensorType::u64:
    case TensorType::s64:
    case TensorType::f64:
      return 8;
    default:
      return 4;
  }
}
constexpr bool is_float(TensorType type) { return type >= TensorType::f16; }

struct TensorBox {
  static constexpr uint64_t kMagic = 0x70616d726f736e65;

  uint64_t magic;
  uint64_t unused;  ///< CUTLASS clears bit 21 of a map's second word when the tensor has less than 128 KiB
  uint64_t data;
  uint64_t strides[4];     ///< bytes, of dimensions 1, 2, …
  uint32_t last_index[5];  ///< sizes less 1
  uint16_t box[5];         ///< elements; im2col: channels, then pixels
  int16_t lower[3], upper[3];
  uint8_t steps[5];  ///< elements from one that is loaded to the next
  uint8_t rank;
  TensorType type;
  SwizzleMode swizzle;
  bool im2col, nan_fill;

  int element_bytes() const { return bytes_of(type); }
  int64_t size(int dimension) const { return int64_t{last_index[dimension]} + 1; }
  /// Elements that arrive along a dimension of a tiled box.
  int count(int dimension) const {
    return dimension == 0 ? box[0] : (box[dimension] + steps[dimension] - 1) / steps[dimension];
  }
  int line_bytes() const { return box[0] * element_bytes(); }
  int lines() const {
    if (im2col) return box[1];
    int lines = 1;
    for (int d = 1; d < rank; ++d) lines *= count(d);
    return lines;
  }
  int bytes() const { return line_bytes() * lines(); }
};
static_assert(sizeof(TensorBox) <= 128);

/// Innermost first; the offsets of an im2col load after them.
struct BoxPlace {
  std::array<int32_t, 5> at;
  std::array<int32_t, 3> offset;
};

/// One line of a box: the elements that are in the tensor, and where they lie.
struct BoxLine {
  uint64_t data;  ///< address of element `begin`
  int begin, end;
};

namespace detail {

inline BoxLine line_at(const TensorBox& box, int first, const std::array<int64_t, 5>& at) {
  const int64_t size = box.size(0), begin = first < 0 ? -int64_t{first} : 0;
  const int64_t end = size - first < box.box[0] ? size - first : box.box[0];
  uint64_t data = box.data + static_cast<uint64_t>((first + begin) * box.element_bytes());
  for (int d = 1; d < box.rank; ++d) {
    const int64_t x = at[static_cast<size_t>(d)];
    if (x < 0 || x >= box.size(d)) return {0, 0, 0};
    data += static_cast<uint64_t>(x) * box.strides[d - 1];
  }
  if (begin >= end) return {0, 0, 0};
  return {data, static_cast<int>(begin), static_cast<int>(end)};
}

}  // namespace detail

/// Calls visit(line number, BoxLine) for each line of the box; begin == end where the line is outside of the tensor.
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
  // Pixels of the box of corners: along W, then H (and D), then to the next image.
  const int spatial = box.rank - 2;
  for (size_t d = 1; d < 5; ++d) at[d] = place.at[d];
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

/// How maps of f32 variants change loaded values. Rounding to TF32: 10 bits of significand, to nearest, ties to
/// even; infinities and NaN as they are (NVIDIA's page names the type and says no more; so Triton's tests of TMA
/// measure it).
inline void convert_loaded(char* data, uint64_t bytes, TensorType type) {
  const bool rounds = type == TensorType::tf32 || type == TensorType::tf32_ftz;
  const bool flushes = type == TensorType::f32_ftz || type == TensorType::tf32_ftz;
  if (!rounds && !flushes) return;
  constexpr uint32_t kExponent = 0x7f800000u, kSign = 0x80000000u;
  for (uint64_t k = 0; k < bytes; k += sizeof(uint32_t)) {
    uint32_t x;
    std::memcpy(&x, data + k, sizeof(x));
    if (flushes && (x & kExponent) == 0) x &= kSign;
    if (rounds && (x & kExponent) != kExponent) x = (x + 0xfffu + (x >> 13 & 1u)) & 0xffffe000u;
    std::memcpy(data + k, &x, sizeof(x));
  }
}

/// The loaded bytes, line by line, in the order without a swizzle. `find(address, bytes)` is the memory of a line,
/// or ends the kernel.
template <class Find>
void gather_box(const TensorBox& box, const BoxPlace& place, char* lines, Find&& find) {
  const uint64_t element = static_cast<uint64_t>(box.element_bytes()),
                 line_bytes = static_cast<uint64_t>(box.line_bytes());
  const int fill = box.nan_fill ? 0xff : 0;
  for_each_line(box, place, [&](int number, const BoxLine& line) {
    char* const to = lines + static_cast<uint64_t>(number) * line_bytes;
    const uint64_t begin = static_cast<uint64_t>(line.begin) * element, end = static_cast<uint64_t>(line.end) * element;
    std::memset(to, fill, begin);
    if (end > begin) {
      std::memcpy(to + begin, find(line.data, end - begin), end - begin);
      convert_loaded(to + begin, end - begin, box.type);
    }
    std::memset(to + end, fill, line_bytes - end);
  });
}

}  // namespace emulator
