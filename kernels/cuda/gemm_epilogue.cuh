// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/dtype.h"

namespace weft::kernels::WEFT_DEVICE {

/// The way of a sum to memory: y = alpha sum (+ bias[n]) (+ y). y and bias hold T or, where their `wide` is set, the
/// type of the sum: one kernel for both, since the branch is the same for the whole launch.
template <class T>
struct Epilogue {
  using Sum = Accumulate<T>;
  void* y;
  const void* bias;  ///< nullptr: none
  Sum alpha;
  bool wide_y, wide_bias, accumulate;
  bool vector;  ///< every row of y begins at a multiple of 4 elements, and y on 16 bytes

  /// Stores `kCount` neighbours of one row of y. offset: of the first of them; n: its column; left: columns that y
  /// still has from there (may be less than kCount, or none).
  template <int kCount>
  __device__ void store(int64_t offset, int n, int left, const Sum (&sums)[kCount]) const {
    if (left <= 0) return;
    if (wide_y)
      store_as<Sum>(offset, n, left, sums);
    else
      store_as<T>(offset, n, left, sums);
  }

 private:
  __device__ Sum finished(Sum sum, int n) const {
    sum *= alpha;
    if (bias != nullptr) {
      if (wide_bias)
        sum += static_cast<const Sum*>(bias)[n];
      else
        sum += static_cast<Sum>(static_cast<const T*>(bias)[n]);
    }
    return sum;
  }

  template <class Y, int kCount>
  __device__ void store_as(int64_t offset, int n, int left, const Sum (&sums)[kCount]) const {
    Y* const to = static_cast<Y*>(y) + offset;
    if (vector && left >= kCount && !accumulate) {
      constexpr int kVector = sizeof(Y) * kCount <= 16 ? kCount : 16 / static_cast<int>(sizeof(Y));
      WEFT_UNROLL
      for (int i = 0; i < kCount; i += kVector) {
        Vec<Y, kVector> values;
        WEFT_UNROLL
        for (int j = 0; j < kVector; ++j) values[j] = static_cast<Y>(finished(sums[i + j], n + i + j));
        values.store(to + i);
      }
      return;
    }
    WEFT_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (i >= left) break;
      Sum value = finished(sums[i], n + i);
      if (accumulate) value += static_cast<Sum>(to[i]);
      to[i] = static_cast<Y>(value);
    }
  }
};

}  // namespace weft::kernels::WEFT_DEVICE
