// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/cuda/ptx/ptx_convert.cuh"
#include "kernels/dtype.h"

// Conversions between element types and the types in which kernels compute, by the hardware's instructions
// (kernels/half.h has none: it serves every device). Always inline: the checked build does not instrument a store whose
// value is a call that returns a struct.

namespace weft::kernels::cuda {

/// The type a kernel computes in: f64 for f64, f32 for the other floating types, i64 for integers and bool.
template <class T>
using Compute = Accumulate<T>;

/// An element as any arithmetic type: `from<float>(x)` is exact for f32, bf16 and f16.
template <class To, class T>
__device__ __forceinline__ To from(T x) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return static_cast<To>(ptx::widen(x));
  else
    return static_cast<To>(x);
}

/// A computed value as an element, rounded once (to nearest even for floating types, truncated for integers).
template <class T, class From>
__device__ __forceinline__ T to(From value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != From(0);
  else if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return ptx::round_to<T>(static_cast<float>(value));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<T> && sizeof(T) < 8)
    return static_cast<T>(static_cast<int64_t>(value));
  else
    return static_cast<T>(value);
}

}  // namespace weft::kernels::cuda
