// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/view.h"

// Kernels that look at whole rows of a contiguous [R, C] matrix: softmax, cross entropy, layer norm.
// A row belongs to a group of threads: a warp, 4 of them in a block of 128 (no barrier, no shared memory), or, for rows
// longer than 4096 elements, a block of 256. Lane k of the group takes units k, k + group, … of V elements.

namespace weft::kernels::WEFT_DEVICE {

template <int kGroup>
struct RowGroup {
  static constexpr int kWarp = 32;
  static constexpr int kThreads = kGroup == kWarp ? 128 : kGroup;
  static constexpr int kRows = kThreads / kGroup;  ///< of a block
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

  /// The maximum over the group, in every lane; NaN is passed over.
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

/// The maximum of a row and sum(exp(x - maximum)).
template <class A>
struct RowExponentials {
  A maximum, sum;
};

/// One pass over the row: every lane rescales its sum when its maximum rises (Milakov and Gimelshein 2018).
template <int kGroup, int V, class T>
__device__ RowExponentials<Accumulate<T>> row_exponentials(const T* x, int64_t C) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  A most = -INFINITY, sum = 0;
  for (int64_t c = G::lane() * V; c < C; c += kGroup * V) {
    const Vec<T, V> unit = Vec<T, V>::load(x + c);
    A next = most;
    for (int i = 0; i < V; ++i) next = G::larger(from<A>(unit[i]), next);
    if (next > most) sum *= exp(most - next);
    most = next;
    const A base = most > A(-INFINITY) ? most : A(0);
    for (int i = 0; i < V; ++i) sum += exp(from<A>(unit[i]) - base);
  }
  const A all = G::max(most);
  sum = most > A(-INFINITY) ? sum * exp(most - all) : sum;
  return {all, G::sum(sum)};
}

inline constexpr int64_t kLongRow = 4096;

/// Calls `body.operator()<group, V>()` for rows of C elements of type T at the given addresses.
template <class T, class Body>
void with_row_shape(int64_t C, std::initializer_list<const void*> data, Body&& body) {
  constexpr int V = 16 / sizeof(T);
  bool wide = C % V == 0;
  for (const void* p : data) wide = wide && reinterpret_cast<uintptr_t>(p) % 16 == 0;
  if (C > kLongRow) {
    if (wide)
      body.template operator()<256, V>();
    else
      body.template operator()<256, 1>();
  } else {
    if (wide)
      body.template operator()<32, V>();
    else
      body.template operator()<32, 1>();
  }
}

}  // namespace weft::kernels::WEFT_DEVICE
