// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernels/activation.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/dtype.h"

namespace weft::kernels::WEFT_DEVICE {

/// The way of a sum to memory: y = f(s) (+ residual) (+ y), s = alpha sum (+ bias[n]), and s itself to `pre`. y,
/// residual and pre, and on its own the bias, hold T or, where their `wide` is set, the type of the sum: one kernel for
/// both, since the branch is the same for the whole launch.
template <class T>
struct Epilogue {
  using Sum = Accumulate<T>;
  void* y;
  const void* bias;  ///< nullptr: none
  Sum alpha;
  bool wide_y, wide_bias, accumulate;
  bool vector;  ///< every row of y begins at a multiple of 4 elements, and y (residual, pre) on 16 bytes
  Activation activation = Activation::none;
  const void* residual = nullptr;  ///< nullptr: none; laid out as y, like `pre`
  void* pre = nullptr;

  /// Stores `kCount` neighbours of one row of y. offset: of the first of them; n: its column; left: columns that y
  /// still has from there (may be less than kCount, or none).
  template <int kCount>
  __device__ void store(int64_t offset, int n, int left, const Sum (&sums)[kCount]) const {
    if (left <= 0) return;
    Sum values[kCount];
    WEFT_UNROLL
    for (int i = 0; i < kCount; ++i) values[i] = sums[i] * alpha + (i < left ? bias_at(n + i) : Sum(0));
    if (std::is_same_v<T, Sum> || wide_y)
      finish<Sum>(offset, left, values);
    else
      finish<T>(offset, left, values);
  }

  /// The bias of column n, which must be one of y's.
  __device__ Sum bias_at(int n) const {
    if (bias == nullptr) return Sum(0);
    if (wide_bias) return static_cast<const Sum*>(bias)[n];
    return static_cast<Sum>(static_cast<const T*>(bias)[n]);
  }

 private:
  template <class Y, int kCount>
  __device__ void finish(int64_t offset, int left, Sum (&values)[kCount]) const {
    if (pre != nullptr) write(static_cast<Y*>(pre) + offset, left, values);
    activate(activation, values);
    if (residual != nullptr) add(static_cast<const Y*>(residual) + offset, left, values);
    if (accumulate) add(static_cast<const Y*>(y) + offset, left, values);
    write(static_cast<Y*>(y) + offset, left, values);
  }

  template <class Y, int kCount>
  static constexpr int kVector = sizeof(Y) * kCount <= 16 ? kCount : 16 / static_cast<int>(sizeof(Y));

  template <class Y, int kCount>
  __device__ void add(const Y* from, int left, Sum (&values)[kCount]) const {
    if (vector && left >= kCount) {
      constexpr int kWidth = kVector<Y, kCount>;
      WEFT_UNROLL
      for (int i = 0; i < kCount; i += kWidth) {
        const auto part = Vec<Y, kWidth>::load(from + i);
        WEFT_UNROLL
        for (int j = 0; j < kWidth; ++j) values[i + j] += static_cast<Sum>(part[j]);
      }
      return;
    }
    WEFT_UNROLL
    for (int i = 0; i < kCount; ++i)
      if (i < left) values[i] += static_cast<Sum>(from[i]);
  }

  template <class Y, int kCount>
  __device__ void write(Y* to, int left, const Sum (&values)[kCount]) const {
    if (vector && left >= kCount) {
      constexpr int kWidth = kVector<Y, kCount>;
      WEFT_UNROLL
      for (int i = 0; i < kCount; i += kWidth) {
        Vec<Y, kWidth> part;
        WEFT_UNROLL
        for (int j = 0; j < kWidth; ++j) part[j] = static_cast<Y>(values[i + j]);
        part.store(to + i);
      }
      return;
    }
    WEFT_UNROLL
    for (int i = 0; i < kCount; ++i)
      if (i < left) to[i] = static_cast<Y>(values[i]);
  }
};

}  // namespace weft::kernels::WEFT_DEVICE
