// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <library_types.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulator/nccl/number.h"

namespace emulator::lt {

using nccl::Bfloat16;
using nccl::Float8E4m3;
using nccl::Float8E5m2;
using nccl::Half;

/// Bytes of an element; 0: a type that no call here takes.
constexpr size_t size_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_8I:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_64F:
      return 8;
    default:
      return 0;
  }
}
constexpr bool is_fp8(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }
/// `bf16`, `e4m3`, `i8`, …
const char* name_of(cudaDataType_t type);

/// Calls f(T()) with the type that elements are stored in.
template <class F>
void with_type(cudaDataType_t type, F&& f) {
  switch (type) {
    case CUDA_R_8I:
      return f(int8_t());
    case CUDA_R_8F_E4M3:
      return f(Float8E4m3());
    case CUDA_R_8F_E5M2:
      return f(Float8E5m2());
    case CUDA_R_16F:
      return f(Half());
    case CUDA_R_16BF:
      return f(Bfloat16());
    case CUDA_R_32F:
      return f(float());
    case CUDA_R_32I:
      return f(int32_t());
    default:
      return f(double());
  }
}

template <class F8>
inline const std::array<float, 256> kFloat8Values = [] {
  std::array<float, 256> values{};
  for (int i = 0; i < 256; ++i) values[static_cast<size_t>(i)] = F8{static_cast<uint8_t>(i)}.widen();
  return values;
}();

/// The element's value; S: float, double, or int32_t and uint32_t for integers.
template <class S, class T>
S widen(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<S>(x);
  else if constexpr (sizeof(T) == 1)
    return static_cast<S>(kFloat8Values<T>[x.bits]);
  else
    return static_cast<S>(x.widen());
}

/// Rounds once: to nearest, ties to even; to integers and 8-bit floats with saturation.
template <class T, class S>
T narrow(S x) {
  if constexpr (std::is_integral_v<T> && std::is_floating_point_v<S>) {
    const double least = std::is_same_v<T, int8_t> ? -128 : -2147483648.0, most = -least - 1;
    return x != x ? T{0} : static_cast<T>(std::clamp(std::nearbyint(static_cast<double>(x)), least, most));
  } else if constexpr (std::is_same_v<T, int8_t>) {
    return static_cast<T>(std::clamp<S>(x, -128, 127));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    return T::narrow(static_cast<float>(x));
  }
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

/// `count` elements, `stride` elements apart.
template <class S>
void load_line(cudaDataType_t type, const std::byte* from, int64_t stride, int64_t count, S* to) {
  with_type(type, [&]<class T>(T) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    if (stride == 1)
      for (int64_t i = 0; i < count; ++i) to[i] = widen<S>(load<T>(from + i * kSize));
    else
      for (int64_t i = 0; i < count; ++i) to[i] = widen<S>(load<T>(from + i * stride * kSize));
  });
}
template <class S>
void store_line(cudaDataType_t type, std::byte* to, int64_t stride, int64_t count, const S* from) {
  with_type(type, [&]<class T>(T) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    if (stride == 1)
      for (int64_t i = 0; i < count; ++i) store(to + i * kSize, narrow<T>(from[i]));
    else
      for (int64_t i = 0; i < count; ++i) store(to + i * stride * kSize, narrow<T>(from[i]));
  });
}

/// To 10 bits of significand.
inline float round_to_tf32(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (u + 0xfffu + ((u >> 13) & 1u)) & ~0x1fffu;
  return (u & 0x7f800000u) == 0x7f800000u ? x : std::bit_cast<float>(rounded);
}

}  // namespace emulator::lt
