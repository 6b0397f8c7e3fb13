// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace emulator::ptx {

const Format* format_of(Type type) {
  // OCP 8-bit Floating Point Specification 1.0; PTX ISA 5.2.3.
  static constexpr Format kF16{2, 5, 10, true, kNanHalf, 0x7bff}, kBf16{2, 8, 7, true, kNanHalf, 0x7f7f},
      kTf32{4, 8, 10, true, kNanF32, 0x7f7fe000}, kF32{4, 8, 23, true, kNanF32, 0x7f7fffff},
      kE4m3{1, 4, 3, false, 0x7f, 0x7e}, kE5m2{1, 5, 2, true, 0x7f, 0x7b};
  switch (type) {
    case Type::f16:
    case Type::f16x2:
      return &kF16;
    case Type::bf16:
    case Type::bf16x2:
      return &kBf16;
    case Type::tf32:
      return &kTf32;
    case Type::f32:
      return &kF32;
    case Type::e4m3:
    case Type::e4m3x2:
      return &kE4m3;
    case Type::e5m2:
    case Type::e5m2x2:
      return &kE5m2;
    default:
      return nullptr;
  }
}

namespace {

/// tf32 lies in the upper bits of an f32.
int unused_bits(const Format& f) { return f.bytes == 4 ? 23 - f.mantissa_bits : 0; }
int bias(const Format& f) { return (1 << (f.exponent_bits - 1)) - 1; }
uint32_t sign_bit(const Format& f) { return uint32_t{1} << (f.exponent_bits + f.mantissa_bits); }

/// An integer number of units in the last place; `fraction` is exactly what lies beyond `low`, in [0, 1).
double round_place(double low, double fraction, bool negative, Rounding rounding) {
  switch (rounding) {
    case Rounding::zero:
      return low;
    case Rounding::down:
      return low + (negative && fraction > 0);
    case Rounding::up:
      return low + (!negative && fraction > 0);
    case Rounding::away:
      return low + (fraction >= 0.5);
    case Rounding::nearest:
      break;
  }
  return low + (fraction > 0.5 || (fraction == 0.5 && std::fmod(low, 2) == 1));
}

}  // namespace

double f64_of_integer(bool negative, uint64_t magnitude, Rounding rounding) {
  const int lost = 11 - std::countl_zero(magnitude);
  double v = static_cast<double>(magnitude >> std::max(lost, 0));
  if (lost > 0) {
    const uint64_t rest = magnitude & ((uint64_t{1} << lost) - 1);
    v = std::ldexp(round_place(v, std::ldexp(static_cast<double>(rest), -lost), negative, rounding), lost);
  }
  return negative ? -v : v;
}

double decode(const Format& f, uint32_t bits) {
  bits >>= unused_bits(f);
  const uint32_t sign = bits & sign_bit(f), magnitude = bits & (sign_bit(f) - 1);
  const uint32_t top = (uint32_t{1} << f.exponent_bits) - 1, exponent = magnitude >> f.mantissa_bits;
  const uint32_t mantissa = magnitude & ((uint32_t{1} << f.mantissa_bits) - 1);
  double v;
  if (f.has_infinity && exponent == top)
    v = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (!f.has_infinity && magnitude == f.nan)
    v = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    v = std::ldexp(mantissa, 1 - bias(f) - f.mantissa_bits);
  else
    v = std::ldexp(mantissa + (uint32_t{1} << f.mantissa_bits), static_cast<int>(exponent) - bias(f) - f.mantissa_bits);
  return sign != 0 ? -v : v;
}

uint32_t encode(const Format& f, double value, Rounding rounding, bool saturates) {
  if (std::isnan(value)) return f.nan;
  const int unused = unused_bits(f);
  const bool negative = std::signbit(value);
  const uint32_t sign = negative ? sign_bit(f) << unused : 0;
  const double magnitude = std::fabs(value);
  const uint32_t largest = f.largest >> unused;
  const uint32_t infinity = f.has_infinity ? ((uint32_t{1} << f.exponent_bits) - 1) << f.mantissa_bits : f.nan;
  uint32_t bits;
  if (std::isinf(value)) {
    bits = saturates ? largest : infinity;
  } else if (magnitude == 0) {
    bits = 0;
  } else {
    // In units in the last place of its binade (of the lowest one for subnormal numbers); a carry goes on into the exponent.
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias(f));
    const double places = std::ldexp(magnitude, f.mantissa_bits - exponent), low = std::floor(places);
    const auto rounded = static_cast<uint64_t>(round_place(low, places - low, negative, rounding));
    const uint64_t coded = rounded + (static_cast<uint64_t>(exponent + bias(f) - 1) << f.mantissa_bits);
    const bool inwards = rounding == Rounding::zero || (rounding == Rounding::down && !negative) ||
                         (rounding == Rounding::up && negative);
    bits = coded <= largest ? static_cast<uint32_t>(coded) : saturates || inwards ? largest : infinity;
  }
  return bits << unused | sign;
}

}  // namespace emulator::ptx
