// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

#include "emulator/ptx/parse/ast.h"

// Numbers that C++ has no types for. First conversions of one lane without branches, which the compiler vectorises;
// they round to the nearest, ties to even. After them any format in any rounding, exactly, one number at a time.

namespace emulator::ptx {

constexpr uint32_t kNanF32 = 0x7fffffff;  ///< f32 instructions return this for a NaN
constexpr uint32_t kNanHalf = 0x7fff;     ///< for f16 and bf16

inline uint32_t bits_of(float v) { return std::bit_cast<uint32_t>(v); }
inline uint64_t bits_of(double v) { return std::bit_cast<uint64_t>(v); }
inline float f32_of(uint32_t bits) { return std::bit_cast<float>(bits); }
inline double f64_of(uint64_t bits) { return std::bit_cast<double>(bits); }

inline float canonical(float v) { return v != v ? f32_of(kNanF32) : v; }
inline double canonical(double v) { return v; }
/// .ftz: a subnormal number becomes a zero of its sign.
inline float flushed(float v) {
  const uint32_t bits = bits_of(v);
  return f32_of((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
}
inline double flushed(double v) { return v; }

/// Exact; NaNs keep their payload.
inline float f32_of_f16(uint32_t half) {
  const uint32_t magnitude = half & 0x7fff;
  const uint32_t bits = bits_of(f32_of(magnitude << 13) * 0x1p112f);
  return f32_of(bits | (magnitude >= 0x7c00 ? 0x7f800000 : 0) | (half & 0x8000) << 16);
}
/// To a format of fewer bits, without handling of overflow: `m` mantissa bits, its exponent's
/// bias.
template <int m, int bias>
inline uint32_t narrowed(uint32_t magnitude) {
  constexpr int lost = 23 - m;
  const uint32_t normal =
      (magnitude - (uint32_t{127 - bias} << 23) + (uint32_t{1} << (lost - 1)) - 1 + (magnitude >> lost & 1)) >> lost;
  // Below the smallest normal number the last place is fixed. An f32 that has the same one is added: that rounds.
  constexpr uint32_t same_place = uint32_t{1 - bias + lost + 127} << 23;
  const uint32_t subnormal = bits_of(f32_of(magnitude) + f32_of(same_place)) - same_place;
  return magnitude < uint32_t{128 - bias} << 23 ? subnormal : normal;
}
inline uint32_t f16_of_f32(float v) {
  const uint32_t sign = bits_of(v) >> 16 & 0x8000, magnitude = bits_of(v) & 0x7fffffff;
  const uint32_t half = magnitude >= 0x47800000 ? 0x7c00 : narrowed<10, 15>(magnitude);
  return magnitude > 0x7f800000 ? kNanHalf : half | sign;
}
/// With .satfinite.
inline uint32_t e4m3_of_f32(float v) {
  const uint32_t sign = bits_of(v) >> 24 & 0x80, magnitude = bits_of(v) & 0x7fffffff;
  const uint32_t code = magnitude >= 0x43e00000 ? 0x7e : narrowed<3, 7>(magnitude);
  return magnitude > 0x7f800000 ? 0x7f : code | sign;
}
inline uint32_t e5m2_of_f32(float v) {
  const uint32_t sign = bits_of(v) >> 24 & 0x80, magnitude = bits_of(v) & 0x7fffffff;
  const uint32_t code = magnitude >= 0x47600000 ? 0x7b : narrowed<2, 15>(magnitude);
  return magnitude > 0x7f800000 ? 0x7f : code | sign;
}
/// Exact, as f16.
inline uint32_t f16_of_e5m2(uint32_t code) { return (code & 0x7f) > 0x7c ? kNanHalf : (code & 0xff) << 8; }
inline uint32_t f16_of_e4m3(uint32_t code) {
  const float v = f32_of((code & 0x7f) << 20) * 0x1p120f;
  return (code & 0x7f) == 0x7f ? kNanHalf : f16_of_f32(v) | (code & 0x80) << 8;
}
inline float f32_of_bf16(uint32_t half) { return f32_of(half << 16); }
inline uint32_t bf16_of_f32(float v) {
  const uint32_t bits = bits_of(v);
  return (bits & 0x7fffffff) > 0x7f800000 ? kNanHalf : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

enum class Rounding : uint8_t { nearest, zero, down, up, away };  ///< away: to the nearest, ties away from zero (.rna)

/// A binary floating-point format.
struct Format {
  int bytes;  ///< in a register
  int exponent_bits, mantissa_bits;
  bool has_infinity;  ///< with NaNs above it, as in IEEE 754; else see `nan`
  uint32_t nan;       ///< the result for a NaN
  uint32_t largest;   ///< the largest finite number
};
/// nullptr for types that are no such format of up to 32 bits. Packed types have the format of a part.
const Format* format_of(Type type);
/// Exact.
double decode(const Format& format, uint32_t bits);
/// Rounds once. A value that is too large becomes infinity (or NaN in a format without), or the largest finite number
/// by the rounding or `saturates` (.satfinite).
uint32_t encode(const Format& format, double value, Rounding rounding, bool saturates);

/// An integer of 64 bits, rounded to f64.
double f64_of_integer(bool negative, uint64_t magnitude, Rounding rounding);

}  // namespace emulator::ptx
