// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/view.h"

// One kernel for everything that computes y[i] = f(x0[i], x1[i], …).
//
// Grid: one dimension, 256 threads per block; a block's units are contiguous, so that the GPU sweeps over memory once
//   from beginning to end. No shared memory, no barrier.
// Shape: the operands' common dimensions are sorted by y's strides and merged if every operand allows it. One inner
//   dimension and at most seven outer dimensions remain. A contiguous tensor has one inner dimension; a bias row
//   added to a matrix has outer [rows] and inner [columns], and the bias has outer stride 0.
// Ownership: a thread owns one unit, or two in large tensors, with both loads in flight. A unit is V neighbours of the
//   inner dimension: V elements of the widest operand are 16 bytes if all operands are aligned and dense or broadcast
//   along the inner dimension; else V = 1.
// Cost: each operand's bytes once, f's flops per element; the index costs one division per outer dimension and unit.
// Roofline: 90% of the memory bandwidth for V > 1, contiguous.

namespace weft::kernels::cuda {

inline constexpr int kElementwiseThreads = 256;

/// Strides of the N operands (the output first) of an elementwise kernel. Dimension 0 is the innermost outer dimension.
template <int N>
struct Layout {
  int rank = 0;       ///< outer dimensions
  int64_t inner = 1;  ///< elements of the inner dimension
  int64_t outer = 1;  ///< product of the outer dimensions
  int64_t inner_stride[N] = {};
  int64_t size[kMaxRank] = {};
  int64_t stride[N][kMaxRank] = {};
};

/// Merges the dimensions of operands of equal sizes.
template <int N>
Layout<N> collapse(const char* name, const std::array<const View*, N>& views) {
  const View& y = *views[0];
  struct Dim {
    int64_t size;
    std::array<int64_t, N> stride;
  };
  std::array<Dim, kMaxRank> dims{};
  int rank = 0;
  for (const View* view : views)
    WEFT_CHECK(view->same_sizes(y), name, ": expected operands of equal sizes, got ", y, " and ", *view);
  for (int d = y.rank - 1; d >= 0; --d) {  // innermost first
    if (y.sizes[d] == 1) continue;
    Dim dim{y.sizes[d], {}};
    for (int k = 0; k < N; ++k) dim.stride[k] = views[k]->strides[d];
    dims[rank++] = dim;
  }
  std::stable_sort(dims.begin(), dims.begin() + rank,
                   [](const Dim& a, const Dim& b) { return std::abs(a.stride[0]) < std::abs(b.stride[0]); });
  int merged = 0;
  for (int d = 1; d < rank; ++d) {
    bool fits = true;
    for (int k = 0; k < N; ++k) fits = fits && dims[d].stride[k] == dims[merged].stride[k] * dims[merged].size;
    if (fits)
      dims[merged].size *= dims[d].size;
    else
      dims[++merged] = dims[d];
  }
  Layout<N> layout;
  if (rank == 0) {
    for (int k = 0; k < N; ++k) layout.inner_stride[k] = 1;
    return layout;
  }
  layout.inner = dims[0].size;
  for (int k = 0; k < N; ++k) layout.inner_stride[k] = dims[0].stride[k];
  layout.rank = merged;
  for (int d = 0; d < merged; ++d) {
    layout.size[d] = dims[d + 1].size;
    layout.outer *= dims[d + 1].size;
    for (int k = 0; k < N; ++k) layout.stride[k][d] = dims[d + 1].stride[k];
  }
  return layout;
}

/// Whether operand k can be accessed V elements at a time (or is broadcast along the inner dimension).
template <int N>
bool takes_vectors(const Layout<N>& layout, int k, const void* data, int64_t v, int64_t element_bytes) {
  if (k > 0 && layout.inner_stride[k] == 0) return true;
  if (layout.inner_stride[k] != 1) return false;
  if (layout.rank > 0 && layout.inner % v != 0) return false;
  for (int d = 0; d < layout.rank; ++d)
    if (layout.stride[k][d] % v != 0) return false;
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(std::min<int64_t>(v * element_bytes, 16)) == 0;
}

/// Loads `count` of V elements from `p`, `stride` apart; for V > 1 the stride is 0 or 1.
template <int V, class T>
__device__ Vec<T, V> load_unit(const T* p, int64_t stride, int count) {
  Vec<T, V> unit;
  if constexpr (V == 1) {
    unit[0] = *p;
  } else if (stride == 0) {
    const T value = *p;
    for (int i = 0; i < V; ++i) unit[i] = value;
  } else if (count == V) {
    unit = Vec<T, V>::load(p);
  } else {
    for (int i = 0; i < V; ++i) unit[i] = i < count ? p[i] : T(0);
  }
  return unit;
}

template <int V, class F, class Y, class... X>
__device__ void apply_unit(const F& f, Y* y, int count, Vec<X, V>... x) {
  Vec<Y, V> unit;
  for (int i = 0; i < V; ++i) unit[i] = f(x[i]...);
  if (count == V) {
    unit.store(y);
  } else {
    for (int i = 0; i < V; ++i)
      if (i < count) y[i] = unit[i];
  }
}

/// A unit's offset in each operand, and its number of elements.
template <int N>
struct UnitPosition {
  int64_t offset[N];
  int count;
};

template <int V, int N>
__device__ __forceinline__ UnitPosition<N> position_of(const Layout<N>& layout, int64_t per_row, int64_t unit) {
  UnitPosition<N> position;
  for (int k = 0; k < N; ++k) position.offset[k] = 0;
  int64_t column = unit;
  if (layout.rank > 0) {
    int64_t row = unit / per_row;
    column = unit - row * per_row;
    for (int d = 0; d < layout.rank; ++d) {
      const int64_t next = row / layout.size[d], at = row - next * layout.size[d];
      for (int k = 0; k < N; ++k) position.offset[k] += at * layout.stride[k][d];
      row = next;
    }
  }
  column *= V;
  for (int k = 0; k < N; ++k) position.offset[k] += column * layout.inner_stride[k];
  const int64_t left = layout.inner - column;
  position.count = left < V ? static_cast<int>(left) : V;
  return position;
}

/// A thread's two units of one operand.
template <int V, class T>
struct TwoUnits {
  Vec<T, V> unit, next;
};

/// Applies f to `units` units in a loop, so that f's code exists once.
template <int V, class F, class Y, class... X>
__device__ __forceinline__ void apply_units(const F& f, int units, Y* y, int count, Y* next_y, int next_count,
                                            TwoUnits<V, X>... x) {
  WEFT_UNROLL_BY(1)
  for (; units > 0; --units) {
    apply_unit<V, F, Y, X...>(f, y, count, x.unit...);
    y = next_y;
    count = next_count;
    ((x.unit = x.next), ...);
  }
}

template <int V, class F, class Y, class... X, int... K>
__device__ void run_elementwise(const F& f, const Layout<1 + sizeof...(X)>& layout, const int per_thread,
                                std::integer_sequence<int, K...>, Y* y, const X*... x) {
  const int64_t per_row = (layout.inner + V - 1) / V, units = per_row * layout.outer;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kElementwiseThreads * per_thread) + threadIdx.x;
  if (first >= units) return;
  const bool both = per_thread > 1 && first + kElementwiseThreads < units;
  const auto one = position_of<V>(layout, per_row, first);
  const auto two = position_of<V>(layout, per_row, both ? first + kElementwiseThreads : first);
  apply_units<V, F, Y, X...>(
      f, both ? 2 : 1, y + one.offset[0], one.count, y + two.offset[0], two.count,
      TwoUnits<V, X>{load_unit<V>(x + one.offset[K + 1], layout.inner_stride[K + 1], one.count),
                     load_unit<V>(x + two.offset[K + 1], layout.inner_stride[K + 1], two.count)}...);
}

template <int V, class F, class Y, class... X>
__global__ void elementwise_kernel(const F f, const Layout<1 + sizeof...(X)> layout, const int per_thread, Y* y,
                                   const X*... x) {
  run_elementwise<V, F, Y, X...>(f, layout, per_thread,
                                 std::make_integer_sequence<int, static_cast<int>(sizeof...(X))>{}, y, x...);
}

/// Launches `kernel` over `units`: two per thread if one per thread would fill the largest GPU twice.
template <class Kernel, class F, class Shape, class... Data>
void launch_elementwise(const Queue& queue, const char* name, Kernel kernel, const F& f, const Shape& layout,
                        int64_t units, Data*... data) {
  const int per_thread = units > (int64_t{1} << 19) ? 2 : 1, per_block = kElementwiseThreads * per_thread;
  launch(queue, name, dim3(static_cast<unsigned>((units + per_block - 1) / per_block)), dim3(kElementwiseThreads), 0,
         kernel, f, layout, per_thread, data...);
}

/// Launches y = f(x...): Y and X are the element types, f a functor for the device. Vectorizable operands use `f`;
/// others use `scalar`, which several calls may share to keep the number of kernels small.
template <class Y, class... X, class F, class S, class... Views>
void elementwise_with(const Queue& queue, const char* name, const F& f, const S& scalar, const View& y,
                      const Views&... x) {
  static_assert(sizeof...(X) == sizeof...(Views));
  constexpr int N = 1 + sizeof...(X);
  constexpr int V = static_cast<int>(16 / std::max({sizeof(Y), sizeof(X)...}));
  const Layout<N> layout = collapse<N>(name, {&y, &x...});
  const int64_t n = layout.inner * layout.outer;
  if (n == 0) return;
  int k = 1;
  bool vectors = takes_vectors<N>(layout, 0, y.data, V, sizeof(Y));
  ((vectors = vectors && takes_vectors<N>(layout, k, x.data, V, sizeof(X)), ++k), ...);
  if (vectors)
    launch_elementwise(queue, name, &elementwise_kernel<V, F, Y, X...>, f, layout,
                       (layout.inner + V - 1) / V * layout.outer, static_cast<Y*>(y.data),
                       static_cast<const X*>(x.data)...);
  else
    launch_elementwise(queue, name, &elementwise_kernel<1, S, Y, X...>, scalar, layout, n, static_cast<Y*>(y.data),
                       static_cast<const X*>(x.data)...);
}

template <class Y, class... X, class F, class... Views>
void elementwise(const Queue& queue, const char* name, const F& f, const View& y, const Views&... x) {
  elementwise_with<Y, X...>(queue, name, f, f, y, x...);
}

/// One element per thread, for any layout: for rarely used types.
template <class Y, class... X, class F, class... Views>
void elementwise_scalar(const Queue& queue, const char* name, const F& f, const View& y, const Views&... x) {
  constexpr int N = 1 + sizeof...(X);
  const Layout<N> layout = collapse<N>(name, {&y, &x...});
  launch_elementwise(queue, name, &elementwise_kernel<1, F, Y, X...>, f, layout, layout.inner * layout.outer,
                     static_cast<Y*>(y.data), static_cast<const X*>(x.data)...);
}

}  // namespace weft::kernels::cuda
