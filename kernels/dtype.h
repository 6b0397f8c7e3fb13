// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "kernels/error.h"
#include "kernels/half.h"

namespace weft {

enum class DType : uint8_t { f32, f64, bf16, f16, i64, i32, u8, boolean };

/// `f32`, `bf16`, … `bool`: a dtype's name in print and in flags.
constexpr std::string_view name(DType dtype) {
  constexpr std::string_view names[] = {"f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool"};
  return names[static_cast<int>(dtype)];
}
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

constexpr size_t size_of(DType dtype) {
  constexpr size_t sizes[] = {4, 8, 2, 2, 8, 4, 1, 1};
  return sizes[static_cast<int>(dtype)];
}
constexpr bool is_floating(DType dtype) { return static_cast<int>(dtype) <= static_cast<int>(DType::f16); }

/// The dtype of a C++ type: `dtype_of<float> == DType::f32`.
template <class T>
inline constexpr DType dtype_of = [] {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, bf16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, f16>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::u8;
  else {
    static_assert(std::is_same_v<T, bool>, "not a tensor element type");
    return DType::boolean;
  }
}();

/// The accumulator type for T: f64 for f64, f32 for the other floating types, i64 for integers.
template <class T>
using Accumulate = std::conditional_t<
    std::is_same_v<T, double>, double,
    std::conditional_t<std::is_same_v<T, float> || std::is_same_v<T, bf16> || std::is_same_v<T, f16>, float, int64_t>>;

/// Calls `body.operator()<T>()` with the one of `Types` that `dtype` names; any other dtype is an error naming `op`.
///   with_dtype<float, bf16>(x.dtype, "gelu", [&]<class T>() { … });
template <class... Types, class Body>
void with_dtype(DType dtype, std::string_view op, Body&& body) {
  const bool found = ((dtype == dtype_of<Types> ? (body.template operator()<Types>(), true) : false) || ...);
  if (!found) {
    std::ostringstream known;
    ((known << (known.tellp() ? ", " : "") << dtype_of<Types>), ...);
    fail(op, ": expected one of ", known.str(), ", got ", dtype);
  }
}

}  // namespace weft
