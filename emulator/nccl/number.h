// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace emulator::nccl {

// Storage types of the formats that C++ has no type for. Each names the type that sums are accumulated in, and converts
// to it and back (round to nearest, ties to even).

/// Converts by integers, since not every compiler has _Float16; loops over these vectorise.
struct Half {
  using Wide = float;
  uint16_t bits;
  float widen() const {
    const uint32_t magnitude = bits & 0x7fffu, sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    // The exponents' biases differ by 112. The product makes subnormals normal.
    const auto finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
    return std::bit_cast<float>(sign | (magnitude >= 0x7c00u ? 0x7f800000u | magnitude << 13 : finite));
  }
  static Half narrow(float x) {
    const auto u = std::bit_cast<uint32_t>(x), magnitude = u & 0x7fffffffu;
    const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    // 0.5f has the spacing of a half's subnormals: the addition rounds.
    const auto shifted = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f);
    const uint32_t subnormal = shifted - std::bit_cast<uint32_t>(0.5f);
    const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint32_t result = magnitude < 0x38800000u ? subnormal : magnitude >= 0x47800000u ? special : normal;
    return {static_cast<uint16_t>((u >> 16 & 0x8000u) | result)};
  }
};

struct Bfloat16 {
  using Wide = float;
  uint16_t bits;
  float widen() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static Bfloat16 narrow(float x) {
    const auto u = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const uint32_t nan = (u >> 16) | 0x40u;  // the addition would carry a NaN into an infinity
    return {static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
  }
};

/// An 8-bit float of OCP's formats: E4M3 has no infinity and a NaN only in 0x7f and 0xff; E5M2 is IEEE's way. Values
/// that are too large become the largest number, as CUDA's conversions do (cuda_fp8.h, __NV_SATFINITE).
template <int kExponentBits>
struct Float8 {
  using Wide = float;
  static constexpr int kMantissaBits = 7 - kExponentBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr uint8_t kLargest = kExponentBits == 4 ? 0x7e : 0x7b;
  static constexpr uint8_t kNan = 0x7f;

  uint8_t bits;

  float widen() const {
    const int exponent = (bits & 0x7f) >> kMantissaBits, mantissa = bits & ((1 << kMantissaBits) - 1);
    float magnitude;
    if ((bits & 0x7f) > kLargest)
      magnitude = kExponentBits == 5 && mantissa == 0 ? INFINITY : NAN;
    else if (exponent == 0)
      magnitude = std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMantissaBits);
    else
      magnitude = std::bit_cast<float>(static_cast<uint32_t>(exponent - kBias + 127) << 23 |
                                       static_cast<uint32_t>(mantissa) << (23 - kMantissaBits));
    return bits & 0x80 ? -magnitude : magnitude;
  }

  static Float8 narrow(float x) {
    const auto sign = static_cast<uint8_t>(std::bit_cast<uint32_t>(x) >> 24 & 0x80u);
    const float magnitude = std::fabs(x);
    if (std::isnan(x)) return {static_cast<uint8_t>(sign | kNan)};
    if (magnitude == 0) return {sign};
    if (magnitude >= Float8{kLargest}.widen()) return {static_cast<uint8_t>(sign | kLargest)};
    int exponent = 0;
    std::frexp(magnitude, &exponent);                                    // magnitude = m * 2^exponent, m in [0.5, 1)
    const int step = std::max(exponent - 1, 1 - kBias) - kMantissaBits;  // the spacing of numbers here is 2^step
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -step)));
    // A carry out of the mantissa raises the exponent by itself; a subnormal's exponent field is 0 and has no hidden
    // one.
    const int field = std::max(step + kMantissaBits + kBias - 1, 0);
    return {static_cast<uint8_t>(sign | ((field << kMantissaBits) + units))};
  }
};

using Float8E4m3 = Float8<4>;
using Float8E5m2 = Float8<5>;

}  // namespace emulator::nccl
