// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define WEFT_HD __host__ __device__ __forceinline__
#else
#define WEFT_HD inline
#endif

namespace weft {

namespace half_bits {

template <class To, class From>
WEFT_HD To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

/// f32 to bf16, round to nearest even; NaN stays NaN (quiet).
WEFT_HD uint16_t to_bf16(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

WEFT_HD float from_bf16(uint16_t bits) { return bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// f32 to IEEE binary16, round to nearest even, with subnormals; overflow gives infinity.
WEFT_HD uint16_t to_f16(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Adding 0.5 aligns the significand so that its last bit weighs 2^-24; the adder rounds to nearest even.
    const float aligned = bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bit_cast<uint32_t>(aligned) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

WEFT_HD float from_f16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;  // 2^-24
    return sign ? -value : value;
  }
  return bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

}  // namespace half_bits

/// bfloat16: the upper 16 bits of an f32. For storage only; arithmetic is done in float and the result rounded once.
struct bf16 {
  uint16_t bits;
  bf16() = default;
  WEFT_HD bf16(float value) : bits(half_bits::to_bf16(value)) {}         // NOLINT(google-explicit-constructor)
  WEFT_HD operator float() const { return half_bits::from_bf16(bits); }  // NOLINT(google-explicit-constructor)
};

/// IEEE 754 binary16. For storage only, as bf16.
struct f16 {
  uint16_t bits;
  f16() = default;
  WEFT_HD f16(float value) : bits(half_bits::to_f16(value)) {}          // NOLINT(google-explicit-constructor)
  WEFT_HD operator float() const { return half_bits::from_f16(bits); }  // NOLINT(google-explicit-constructor)
};

}  // namespace weft
