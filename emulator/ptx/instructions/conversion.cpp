// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/conversion.h"

#include <algorithm>
#include <cmath>

namespace emulator::ptx {
namespace {

uint64_t low_bits(int bytes) { return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1; }

}  // namespace

double integral(double v, Rounding rounding) {
  switch (rounding) {
    case Rounding::zero:
      return std::trunc(v);
    case Rounding::down:
      return std::floor(v);
    case Rounding::up:
      return std::ceil(v);
    default:
      return std::nearbyint(v);
  }
}

double Conversion::read_float(uint64_t bits) const {
  if (from == Type::f64) return f64_of(bits);
  if (from == Type::f32) {
    const float v = f32_of(static_cast<uint32_t>(bits));
    return static_cast<double>(ftz ? flushed(v) : v);
  }
  return decode(*format_of(from), static_cast<uint32_t>(bits & low_bits(bytes_of(from))));
}

uint64_t Conversion::write_integer(uint64_t bits) const {
  const int unused = 64 - 8 * bytes_of(to);
  bits <<= unused;
  bits = is_signed(to) ? static_cast<uint64_t>(static_cast<int64_t>(bits) >> unused) : bits >> unused;
  return bits & low_bits(to_bytes);
}

uint64_t Conversion::integer_of_integer(bool negative, uint64_t magnitude) const {
  if (sat) {
    const uint64_t largest = low_bits(bytes_of(to)) >> (is_signed(to) ? 1 : 0);
    magnitude = negative ? std::min(magnitude, is_signed(to) ? largest + 1 : 0) : std::min(magnitude, largest);
  }
  return write_integer(negative ? 0 - magnitude : magnitude);
}

uint64_t Conversion::integer_of_float(double v) const {
  const int bits = 8 * bytes_of(to);
  if (std::isnan(v)) return write_integer(integer_of_nan(from == Type::f64, bits));
  const double whole = integral(v, rounding), limit = std::ldexp(1.0, is_signed(to) ? bits - 1 : bits);
  const bool negative = whole < 0;
  if (!negative)
    return write_integer(whole >= limit ? low_bits(bytes_of(to)) >> (is_signed(to) ? 1 : 0)
                                        : static_cast<uint64_t>(whole));
  if (!is_signed(to)) return 0;
  return write_integer(whole <= -limit ? uint64_t{1} << (bits - 1) : 0 - static_cast<uint64_t>(-whole));
}

uint64_t Conversion::write_float(double v) const {
  if (relu && v <= 0) v = 0;
  if (sat) v = v > 0 ? std::min(v, 1.0) : 0;
  if (to == Type::f64) return bits_of(v);
  const uint32_t bits = encode(*format_of(to), v, to_integral ? Rounding::nearest : rounding, satfinite);
  return to == Type::f32 && ftz ? bits_of(flushed(f32_of(bits))) : bits;
}

uint64_t Conversion::operator()(uint64_t bits) const {
  if (is_float(from)) {
    const double v = read_float(bits);
    if (!is_float(to)) return integer_of_float(v);
    return write_float(to_integral ? integral(v, rounding) : v);
  }
  const int unused = 64 - 8 * bytes_of(from);
  bits <<= unused;
  const bool negative = is_signed(from) && static_cast<int64_t>(bits) < 0;
  const uint64_t magnitude =
      negative ? 0 - static_cast<uint64_t>(static_cast<int64_t>(bits) >> unused) : bits >> unused;
  if (!is_float(to)) return integer_of_integer(negative, magnitude);
  if (to == Type::f64) return write_float(f64_of_integer(negative, magnitude, rounding));
  // Narrower floats: an odd last bit marks bits beyond f64 (round to odd), so that the single rounding is right.
  const uint64_t held =
      magnitude >> 53 == 0 ? magnitude : (magnitude & ~uint64_t{0xfff}) | uint64_t{(magnitude & 0xfff) != 0} << 11;
  return write_float(f64_of_integer(negative, held, Rounding::zero));
}

}  // namespace emulator::ptx
