// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

// The elements of matrix operands: `Bits` as they lie in registers and memory, `Number` as they are multiplied.
// number() has no branches, so that loops over it become vectors.

namespace emulator::ptx::matrix {

struct F16 {
  using Bits = uint16_t;
  using Number = float;
  static float number(uint16_t bits) {
    // The exponent's bias differs by 112: a multiplication, which makes subnormals right as well.
    const uint32_t rest = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
    const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
    const uint32_t special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
    return std::bit_cast<float>(finite | special | sign);
  }
  /// To nearest, ties to even.
  static uint16_t bits(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value), sign = x >> 16 & 0x8000u, rest = x & 0x7fffffffu;
    if (rest > 0x7f800000u) return 0x7fff;
    if (rest >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (rest < 0x38800000u) {  // subnormal: the addition rounds at 2^-24
      const float sum = std::bit_cast<float>(rest) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000u));
    }
    return static_cast<uint16_t>(sign | ((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1)) >> 13));
  }
};

struct Bf16 {
  using Bits = uint16_t;
  using Number = float;
  static float number(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
  /// To nearest, ties to even.
  static uint16_t bits(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value);
    if ((x & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<uint16_t>((x + 0x7fffu + (x >> 16 & 1)) >> 16);
  }
};

struct Tf32 {
  using Bits = uint32_t;
  using Number = float;
  static float number(uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000u); }
};

struct E5m2 {
  using Bits = uint8_t;
  using Number = float;
  static float number(uint8_t bits) { return F16::number(static_cast<uint16_t>(bits << 8)); }
};

struct E4m3 {
  using Bits = uint8_t;
  using Number = float;
  static float number(uint8_t bits) {
    const uint32_t rest = (bits & 0x7fu) << 20, sign = (bits & 0x80u) << 24;
    const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p120f);
    const uint32_t nan = (bits & 0x7fu) == 0x7fu ? 0x7fc00000u : 0;
    return std::bit_cast<float>(finite | nan | sign);
  }
};

struct S8 {
  using Bits = uint8_t;
  using Number = int32_t;
  static int32_t number(uint8_t bits) { return static_cast<int8_t>(bits); }
};

struct U8 {
  using Bits = uint8_t;
  using Number = int32_t;
  static int32_t number(uint8_t bits) { return bits; }
};

/// Two of them are a byte, the first in its lower half; number() takes the half.
struct S4 {
  using Bits = uint8_t;
  using Number = int32_t;
  static int32_t number(uint8_t bits) { return (bits ^ 8) - 8; }
};

struct U4 {
  using Bits = uint8_t;
  using Number = int32_t;
  static int32_t number(uint8_t bits) { return bits; }
};

struct F64 {
  using Bits = double;
  using Number = double;
  static double number(double bits) { return bits; }
};

/// Makes each product and sum of a function one operation, as in tensor cores. For types whose products are exact in
/// f32 this changes the speed only, for f64 the result.
#if defined(__GNUC__) && !defined(__clang__)
#define EMULATOR_FUSED [[gnu::optimize("fp-contract=fast")]]
#else
#define EMULATOR_FUSED
#endif

/// A vector of N numbers as GCC and Clang have them.
template <class T, int N>
struct VectorOf {
  using Type __attribute__((vector_size(N * sizeof(T)))) = T;
};
template <class T>
using Eight = typename VectorOf<T, 8>::Type;
/// A vector in memory that is aligned to its elements. (A memcpy of several vectors goes through the stack with
/// GCC 12.)
template <class T>
using EightAt __attribute__((may_alias, aligned(alignof(T)))) = Eight<T>;
template <class T>
const EightAt<T>& eight_at(const T* from) {
  return *reinterpret_cast<const EightAt<T>*>(from);
}
template <class T>
EightAt<T>& eight_at(T* at) {
  return *reinterpret_cast<EightAt<T>*>(at);
}

/// The sum of two s32: wrapped, or held at the ends of the range.
inline int32_t add_s32(int32_t a, int32_t b, bool saturate) {
  int32_t sum;
  if (!__builtin_add_overflow(a, b, &sum) || !saturate) return sum;
  return a < 0 ? INT32_MIN : INT32_MAX;
}

}  // namespace emulator::ptx::matrix
