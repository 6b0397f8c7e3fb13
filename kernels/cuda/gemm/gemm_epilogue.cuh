// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernels/contracts/activation.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/dtype.h"

namespace weft::kernels::cuda {

/// 1 / sqrt(x), in f32 to two units in the last place: one instruction, without a division's slow path.
__device__ __forceinline__ float inverse_root(float x) { return rsqrtf(x); }
__device__ __forceinline__ double inverse_root(double x) { return rsqrt(x); }

/// A norm with fixed statistics after the GEMM: (s - mean[n]) / sqrt(var[n] + eps) weight[n] + bias[n].
template <class Sum>
struct ColumnNorm {
  const Sum *mean, *var;     ///< var is nullptr: none
  const Sum *weight, *bias;  ///< nullptr: none
  Sum eps;
};

/// Stores accumulators: y = f(s) (+ residual) (+ y), s = alpha sum (+ bias[n]), and s itself to `pre`; if `saved` is
/// given, s f'(saved) replaces f(s). y, residual, pre and saved have type T or, with `wide_y`, the accumulator's type;
/// the bias likewise by its own flag. One kernel serves both, since the branch is uniform over the launch. Convolution
/// kernels (kChannels) also support `norm`, after the bias, and `moments`.
template <class T>
struct Epilogue {
  using Sum = Accumulate<T>;
  void* y;
  const void* bias;  ///< nullptr: none
  Sum alpha;
  bool wide_y, wide_bias, accumulate;
  bool vector;  ///< every row of y begins at a multiple of 4 elements, and y (residual, pre, saved) on 16 bytes
  Activation activation = Activation::none;
  const void* residual = nullptr;  ///< nullptr: none; laid out as y, like `pre`
  void* pre = nullptr;
  const void* saved = nullptr;  ///< nullptr: none; laid out as y
  bool relu_last = false;       ///< max(0, …) last
  ColumnNorm<Sum> norm{};
  Sum* moments = nullptr;  ///< statistics of y's columns, see tile_moments.cuh; nullptr: none
  int channels = 0;        ///< columns of `moments`

  /// The first step for a column's accumulators: s = sum scale + shift.
  struct Column {
    Sum scale, shift;
    __device__ Sum operator()(Sum sum) const { return sum * scale + shift; }
  };

  /// Loads the constants of columns n, n + 1, …; y still has `left` columns from n (may be less than kCount, or none).
  template <bool kChannels, int kCount>
  __device__ __forceinline__ void columns(int n, int left, Column (&to)[kCount]) const {
    WEFT_UNROLL
    for (int i = 0; i < kCount; ++i) to[i] = i < left ? column<kChannels>(n + i) : Column{alpha, Sum(0)};
  }

  /// Stores `kCount` neighbours of one row of y. offset and n: offset and column of the first; left: columns that y
  /// still has from n (may be less than kCount, or none).
  template <bool kChannels, int kCount>
  __device__ void store(int64_t offset, int n, int left, const Sum (&sums)[kCount]) const {
    Column of[kCount];
    columns<kChannels>(n, left, of);
    store(offset, left, sums, of);
  }

  /// Whether store() only stores scaled accumulators. Call once, before a loop of store().
  __device__ bool is_plain() const {
    return pre == nullptr && saved == nullptr && activation == Activation::none && residual == nullptr && !accumulate &&
           !relu_last;
  }

  /// As above, with the columns' constants already loaded. plain: is_plain().
  template <int kCount>
  __device__ void store(int64_t offset, int left, const Sum (&sums)[kCount], const Column (&of)[kCount],
                        bool plain = false) const {
    if (left <= 0) return;
    Sum values[kCount];
    WEFT_UNROLL
    for (int i = 0; i < kCount; ++i) values[i] = of[i](sums[i]);
    if (std::is_same_v<T, Sum> || wide_y)
      finish<Sum>(offset, left, values, plain);
    else
      finish<T>(offset, left, values, plain);
  }

  /// The bias of column n, which must be one of y's.
  __device__ Sum bias_at(int n) const {
    if (bias == nullptr) return Sum(0);
    if (wide_bias) return static_cast<const Sum*>(bias)[n];
    return static_cast<Sum>(static_cast<const T*>(bias)[n]);
  }

  template <int kCount>
  __device__ __forceinline__ void clip(Sum (&values)[kCount]) const {
    if (!relu_last) return;
    WEFT_UNROLL
    for (int i = 0; i < kCount; ++i) values[i] = values[i] < Sum(0) ? Sum(0) : values[i];  // NaN passes
  }

 private:
  template <bool kChannels>
  __device__ __forceinline__ Column column(int n) const {
    Column column{alpha, bias_at(n)};
    if constexpr (kChannels) {
      if (norm.var != nullptr) {
        Sum scale = inverse_root(norm.var[n] + norm.eps);
        if (norm.weight != nullptr) scale *= norm.weight[n];
        column.scale *= scale;
        column.shift = (column.shift - norm.mean[n]) * scale + (norm.bias != nullptr ? norm.bias[n] : Sum(0));
      }
    }
    return column;
  }

  template <class Y, int kCount>
  __device__ void finish(int64_t offset, int left, Sum (&values)[kCount], bool plain) const {
    if (!plain) {
      if (pre != nullptr) write(static_cast<Y*>(pre) + offset, left, values);
      if (saved != nullptr) {
        Sum at[kCount] = {};
        read<Y, kCount>(static_cast<const Y*>(saved) + offset, left, [&](int i, Sum value) { at[i] = value; });
        activate_backward(activation, values, at);
      } else {
        activate(activation, values);
      }
      if (residual != nullptr) add(static_cast<const Y*>(residual) + offset, left, values);
      if (accumulate) add(static_cast<const Y*>(y) + offset, left, values);
      clip(values);
    }
    write(static_cast<Y*>(y) + offset, left, values);
  }

  template <class Y, int kCount>
  static constexpr int kVector = sizeof(Y) * kCount <= 16 ? kCount : 16 / static_cast<int>(sizeof(Y));

  /// Calls visit(i, element i) for the first `left` of kCount neighbours.
  template <class Y, int kCount, class Visit>
  __device__ __forceinline__ void read(const Y* from, int left, Visit&& visit) const {
    if (vector && left >= kCount) {
      constexpr int kWidth = kVector<Y, kCount>;
      WEFT_UNROLL
      for (int i = 0; i < kCount; i += kWidth) {
        const auto part = Vec<Y, kWidth>::load(from + i);
        WEFT_UNROLL
        for (int j = 0; j < kWidth; ++j) visit(i + j, static_cast<Sum>(part[j]));
      }
      return;
    }
    WEFT_UNROLL
    for (int i = 0; i < kCount; ++i)
      if (i < left) visit(i, static_cast<Sum>(from[i]));
  }

  template <class Y, int kCount>
  __device__ void add(const Y* from, int left, Sum (&values)[kCount]) const {
    read<Y, kCount>(from, left, [&](int i, Sum value) { values[i] += value; });
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

}  // namespace weft::kernels::cuda
