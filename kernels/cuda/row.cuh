// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/view.h"

// Shared by kernels that process whole rows of a contiguous [R, C] matrix: softmax, cross entropy, layer norm. A row
// belongs to a group of threads: a warp, 4 per block of 128 (no barrier, no shared memory), or a block of 128 or 256.
// Lane k of the group owns units k, k + group, … of V elements, 16 bytes each if addresses and C allow. An aligned row
// of up to 4 units per lane is loaded once, with all loads in flight together, and stays in registers; other rows are
// read again in each pass, from L1 or L2.

namespace weft::kernels::cuda {

template <int kGroup>
struct RowGroup {
  static constexpr int kWarp = 32;
  static constexpr int kThreads = kGroup == kWarp ? 128 : kGroup;
  static constexpr int kRows = kThreads / kGroup;  ///< rows per block
  static constexpr int kWarps = kGroup / kWarp;
  static constexpr unsigned kAllLanes = 0xffffffffu;

  static __device__ int lane() { return static_cast<int>(threadIdx.x) % kGroup; }
  static __device__ int64_t row() { return static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kGroup; }

  static __device__ float larger(float a, float b) { return a > b ? a : b; }
  static __device__ double larger(double a, double b) { return a > b ? a : b; }

  /// The sum over the group, in every lane. All threads of the block must call.
  template <class A>
  static __device__ A sum(A value) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
    if constexpr (kWarps > 1) {
      __shared__ A of_warp[kWarps];
      __syncthreads();  // the last call's values have been read
      if (lane() % kWarp == 0) of_warp[lane() / kWarp] = value;
      __syncthreads();
      value = of_warp[0];
      for (int w = 1; w < kWarps; ++w) value += of_warp[w];
    }
    return value;
  }

  /// The maximum over the group, in every lane; NaN is ignored.
  template <class A>
  static __device__ A max(A value) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      value = larger(value, __shfl_xor_sync(kAllLanes, value, distance));
    if constexpr (kWarps > 1) {
      __shared__ A of_warp[kWarps];
      __syncthreads();
      if (lane() % kWarp == 0) of_warp[lane() / kWarp] = value;
      __syncthreads();
      value = of_warp[0];
      for (int w = 1; w < kWarps; ++w) value = larger(value, of_warp[w]);
    }
    return value;
  }

  static dim3 grid(int64_t rows) { return dim3(static_cast<unsigned>((rows + kRows - 1) / kRows)); }
};

/// Calls f(k, c) for the units of this lane; the k-th begins at column c. kUnits: their maximum number, a constant, so
/// that `k` may index registers; 0: any number.
template <int kGroup, int V, int kUnits, class F>
__device__ __forceinline__ void for_units(int64_t C, F&& f) {
  const int64_t first = RowGroup<kGroup>::lane() * V;
  if constexpr (kUnits > 0) {
    WEFT_UNROLL
    for (int k = 0; k < kUnits; ++k)
      if (first + k * (kGroup * V) < C) f(k, first + k * (kGroup * V));
  } else {
    for (int64_t c = first; c < C; c += kGroup * V) f(0, c);
  }
}

/// A lane's units of a row: in registers (kUnits > 0), else in memory. kTail: the last unit may reach beyond the row,
/// where its elements read as -infinity.
template <int kGroup, int V, int kUnits, class T, bool kTail = false>
class Row {
 public:
  __device__ Row(const T* data, int64_t C) : data_(data), columns_(C) {
    if constexpr (kUnits > 0)
      for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) { units_[k] = Vec<T, V>::load(data + c); });
  }
  __device__ __forceinline__ Vec<T, V> at(int k, int64_t c) const {
    if constexpr (kUnits > 0) {
      return units_[k];
    } else if (!kTail || c + V <= columns_) {
      return Vec<T, V>::load(data_ + c);
    } else {
      Vec<T, V> unit;
      for (int i = 0; i < V; ++i) unit[i] = c + i < columns_ ? data_[c + i] : to<T>(-INFINITY);
      return unit;
    }
  }
  /// Replaces unit k by `unit`, which the caller has stored to `data`.
  __device__ __forceinline__ void replace(int k, const Vec<T, V>& unit) {
    if constexpr (kUnits > 0) units_[k] = unit;
  }
  __device__ void now_at(const T* data) { data_ = data; }

 private:
  const T* data_;
  [[maybe_unused]] int64_t columns_;
  Vec<T, V> units_[kUnits > 0 ? kUnits : 1];
};

/// The maximum of a row and sum(exp(x - maximum)).
template <class A>
struct RowExponentials {
  A maximum, sum;
};

/// For rows in registers, computes the maximum first. Else makes one pass over the row: every lane rescales its sum
/// when its maximum rises (Milakov and Gimelshein 2018).
template <int kGroup, int V, int kUnits, class T, bool kTail>
__device__ RowExponentials<Accumulate<T>> row_exponentials(const Row<kGroup, V, kUnits, T, kTail>& x, int64_t C) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  A most = -INFINITY, sum = 0;
  if constexpr (kUnits > 0) {
    for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
      const Vec<T, V> unit = x.at(k, c);
      for (int i = 0; i < V; ++i) most = G::larger(from<A>(unit[i]), most);
    });
    const A of_row = G::max(most), base = of_row > A(-INFINITY) ? of_row : A(0);
    for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
      const Vec<T, V> unit = x.at(k, c);
      for (int i = 0; i < V; ++i) sum += exp(from<A>(unit[i]) - base);
    });
    return {of_row, G::sum(sum)};
  }
  for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
    const Vec<T, V> unit = x.at(k, c);
    A next = most;
    for (int i = 0; i < V; ++i) next = G::larger(from<A>(unit[i]), next);
    if (next > most) sum *= exp(most - next);
    most = next;
    const A base = most > A(-INFINITY) ? most : A(0);
    for (int i = 0; i < V; ++i) sum += exp(from<A>(unit[i]) - base);
  });
  const A all = G::max(most);
  sum = most > A(-INFINITY) ? sum * exp(most - all) : sum;
  return {all, G::sum(sum)};
}

inline constexpr int64_t kLongRow = 4096;
inline constexpr int kRowUnits = 4;  ///< maximum units per lane of a row in registers

/// Calls `body.operator()<group, V, units>()` for rows of C elements of type T at the given addresses. pitch: elements
/// from row to row, 0: C. With a pitch of whole units, long rows may end within one (Row's kTail).
template <class T, class Body>
void with_row_shape(int64_t C, std::initializer_list<const void*> data, Body&& body, int64_t pitch = 0) {
  constexpr int V = 16 / sizeof(T);
  bool wide = pitch > 0 ? pitch % V == 0 && (C % V == 0 || C > 128 * V * kRowUnits) : C % V == 0;
  for (const void* p : data) wide = wide && reinterpret_cast<uintptr_t>(p) % 16 == 0;
  if (!wide) {
    if (C > kLongRow)
      body.template operator()<256, 1, 0>();
    else
      body.template operator()<32, 1, 0>();
  } else if (C <= 32 * V * kRowUnits) {
    body.template operator()<32, V, kRowUnits>();
  } else if (C <= 128 * V * kRowUnits) {
    body.template operator()<128, V, kRowUnits>();
  } else {
    body.template operator()<256, V, 0>();
  }
}

}  // namespace weft::kernels::cuda
