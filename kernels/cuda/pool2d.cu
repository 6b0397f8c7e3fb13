// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/pool2d.h"

#include <algorithm>

#include "kernels/contracts/reduce.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"

// Grid: images along y, the positions of an image along x, 256 threads per block; no barrier, no shared memory. In
// forward a thread owns V neighbouring channels (16 bytes; V = 1 if C or a pointer is not aligned) of one output
// position and walks its window. In backward a thread owns an input position and gathers from the windows that cover
// the position, in order: no atomics are needed. Neighbouring threads own neighbouring channels: every access is
// coalesced, and overlapping windows hit L1 and L2. Bytes from memory per input element of size e: max 3x3 stride 2
// forward e + (e + 4) / 4, backward the same. 80% of the bandwidth. Indices within an image have 32 bits, and divisions
// are multiplications: 64-bit divisions took a third of the backward's time on an H200.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 256;

struct Shape {
  int64_t N;
  int H, W, C, P, Q;

  __device__ int64_t inputs() const { return int64_t{H} * W * C; }  ///< elements per image
  __device__ int64_t outputs() const { return int64_t{P} * Q * C; }
};

struct Window {
  int kernel_h, kernel_w;
  Divider stride_h, stride_w;
  int padding_h, padding_w;
};

Shape shape_of(const char* name, const View& y, const View& x) {
  WEFT_CHECK(x.rank == 4 && y.rank == 4 && x.is_contiguous() && y.is_contiguous() && x.dtype == y.dtype &&
                 x.sizes[0] == y.sizes[0] && x.sizes[3] == y.sizes[3],
             name, ": expected contiguous [N, H, W, C] and [N, P, Q, C] of one dtype, got ", x, " and ", y);
  const auto edge = [](int64_t size) { return static_cast<int>(size); };
  constexpr int64_t kLimit = int64_t{1} << 31;
  WEFT_CHECK(x.numel() == 0 || (x.numel() / x.sizes[0] < kLimit && y.numel() / y.sizes[0] < kLimit), name,
             ": expected images of fewer than 2^31 elements, got ", x, " and ", y);
  return {x.sizes[0], edge(x.sizes[1]), edge(x.sizes[2]), edge(x.sizes[3]), edge(y.sizes[1]), edge(y.sizes[2])};
}

Window window_of(const Pool2dArguments& a) {
  return {static_cast<int>(a.kernel.h), static_cast<int>(a.kernel.w),  Divider(a.stride.h),
          Divider(a.stride.w),          static_cast<int>(a.padding.h), static_cast<int>(a.padding.w)};
}

/// The units of V channels in an image [rows, columns, C], and how a launch maps threads to them.
struct Units {
  int count;  ///< units per image
  int64_t images;
  Divider channels;  ///< units per position
  Divider columns;

  struct Position {
    int row, column, channel;
  };
  /// This thread's unit; an index >= `count` means none.
  __device__ __forceinline__ int64_t own() const { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
  template <int V>
  __device__ __forceinline__ Position position(int unit) const {
    int channel = unit;
    int column = channels.split(channel);
    const int row = columns.split(column);
    return {row, column, channel * V};
  }
};

/// Rows, columns or windows [first, end).
struct Range {
  int first, end;
};

/// Rows (or columns) of `size` that are in window `at`.
__device__ inline Range window_range(int at, int kernel, const Divider& stride, int padding, int size) {
  const int begin = at * stride.divisor() - padding;
  return {max(begin, 0), min(begin + kernel, size)};
}

/// The windows, of `count` windows, that cover position `at`.
__device__ inline Range cover_of(int at, int kernel, const Divider& stride, int padding, int count) {
  const int before = at + padding - kernel;
  return {before < 0 ? 0 : stride.quotient(before) + 1, min(stride.quotient(at + padding) + 1, count)};
}

/// Stores this thread's unit `at` of each image n of y (`size` elements): `sum_of(sum, n, at)` adds to zeros.
template <int V, class T, class SumOf>
__device__ __forceinline__ void store_sums(T* y, int64_t size, const Units& units, const SumOf& sum_of) {
  using A = Accumulate<T>;
  if (units.own() >= units.count) return;
  const int unit = static_cast<int>(units.own());
  const Units::Position at = units.position<V>(unit);
  for (int64_t n = blockIdx.y; n < units.images; n += gridDim.y) {
    A sum[V];
    for (int i = 0; i < V; ++i) sum[i] = A(0);
    sum_of(sum, n, at);
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) out[i] = to<T>(sum[i]);
    out.store(y + n * size + unit * V);
  }
}

template <int V, class T>
__global__ void max_forward_kernel(T* y, int32_t* index, const T* x, const Shape s, const Window w, const Units units) {
  using A = Accumulate<T>;
  if (units.own() >= units.count) return;
  const int unit = static_cast<int>(units.own());
  const Units::Position at = units.position<V>(unit);
  for (int64_t n = blockIdx.y; n < units.images; n += gridDim.y) {
    const T* const image = x + n * s.inputs() + at.channel;
    const Range rows = window_range(at.row, w.kernel_h, w.stride_h, w.padding_h, s.H);
    const Range columns = window_range(at.column, w.kernel_w, w.stride_w, w.padding_w, s.W);
    A most[V];
    Vec<int32_t, V> found;
    bool first = true;
    for (int i = 0; i < V; ++i) most[i] = -INFINITY, found[i] = -1;
    for (int h = rows.first; h < rows.end; ++h) {
      for (int q = columns.first; q < columns.end; ++q) {
        const Vec<T, V> values = Vec<T, V>::load(image + (h * s.W + q) * s.C);
        for (int i = 0; i < V; ++i) {
          const A value = from<A>(values[i]);
          if (first || value > most[i] || (value != value && most[i] == most[i])) {
            most[i] = value;
            found[i] = h * s.W + q;
          }
        }
        first = false;
      }
    }
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) out[i] = to<T>(most[i]);
    out.store(y + n * s.outputs() + unit * V);
    found.store(index + n * s.outputs() + unit * V);
  }
}

template <int V, class T>
__global__ void max_backward_kernel(T* dx, const T* dy, const int32_t* index, const Shape s, const Window w,
                                    const Units units) {
  using A = Accumulate<T>;
  store_sums<V>(dx, s.inputs(), units, [&](A(&sum)[V], int64_t n, const Units::Position& at) {
    const T* const slopes = dy + n * s.outputs() + at.channel;
    const int32_t* const indices = index + n * s.outputs() + at.channel;
    const int here = at.row * s.W + at.column;
    const Range rows = cover_of(at.row, w.kernel_h, w.stride_h, w.padding_h, s.P);
    const Range columns = cover_of(at.column, w.kernel_w, w.stride_w, w.padding_w, s.Q);
    for (int p = rows.first; p < rows.end; ++p) {
      for (int q = columns.first; q < columns.end; ++q) {
        const int from_y = (p * s.Q + q) * s.C;
        const Vec<int32_t, V> found = Vec<int32_t, V>::load(indices + from_y);
        const Vec<T, V> values = Vec<T, V>::load(slopes + from_y);
        for (int i = 0; i < V; ++i)
          if (found[i] == here) sum[i] += from<A>(values[i]);
      }
    }
  });
}

/// The divisor, along one dimension, of an average over window row or column `at` of extent `kernel`.
__device__ inline int extent_of(int at, int kernel, const Divider& stride, int padding, int size, bool count_padding) {
  const int begin = at * stride.divisor() - padding;
  if (count_padding) return min(begin + kernel, size + padding) - begin;
  return min(begin + kernel, size) - max(begin, 0);
}

template <int V, class T>
__global__ void avg_forward_kernel(T* y, const T* x, const Shape s, const Window w, const bool count_padding,
                                   const Units units) {
  using A = Accumulate<T>;
  store_sums<V>(y, s.outputs(), units, [&](A(&sum)[V], int64_t n, const Units::Position& at) {
    const T* const image = x + n * s.inputs() + at.channel;
    const Range rows = window_range(at.row, w.kernel_h, w.stride_h, w.padding_h, s.H);
    const Range columns = window_range(at.column, w.kernel_w, w.stride_w, w.padding_w, s.W);
    for (int h = rows.first; h < rows.end; ++h) {
      for (int q = columns.first; q < columns.end; ++q) {
        const Vec<T, V> values = Vec<T, V>::load(image + (h * s.W + q) * s.C);
        for (int i = 0; i < V; ++i) sum[i] += from<A>(values[i]);
      }
    }
    const int count = extent_of(at.row, w.kernel_h, w.stride_h, w.padding_h, s.H, count_padding) *
                      extent_of(at.column, w.kernel_w, w.stride_w, w.padding_w, s.W, count_padding);
    for (int i = 0; i < V; ++i) sum[i] /= static_cast<A>(count);
  });
}

template <int V, class T>
__global__ void avg_backward_kernel(T* dx, const T* dy, const Shape s, const Window w, const bool count_padding,
                                    const Units units) {
  using A = Accumulate<T>;
  store_sums<V>(dx, s.inputs(), units, [&](A(&sum)[V], int64_t n, const Units::Position& at) {
    const T* const slopes = dy + n * s.outputs() + at.channel;
    const Range rows = cover_of(at.row, w.kernel_h, w.stride_h, w.padding_h, s.P);
    const Range columns = cover_of(at.column, w.kernel_w, w.stride_w, w.padding_w, s.Q);
    for (int p = rows.first; p < rows.end; ++p) {
      const int height = extent_of(p, w.kernel_h, w.stride_h, w.padding_h, s.H, count_padding);
      for (int q = columns.first; q < columns.end; ++q) {
        const int width = extent_of(q, w.kernel_w, w.stride_w, w.padding_w, s.W, count_padding);
        const A share = A(1) / static_cast<A>(height * width);
        const Vec<T, V> values = Vec<T, V>::load(slopes + (p * s.Q + q) * s.C);
        for (int i = 0; i < V; ++i) sum[i] += from<A>(values[i]) * share;
      }
    }
  });
}

/// Rows (or columns) that adaptive output `p` of `count` averages.
__device__ inline Range adaptive_range(int64_t p, int64_t size, int64_t count) {
  return {static_cast<int>(p * size / count), static_cast<int>(((p + 1) * size + count - 1) / count)};
}

template <int V, class T>
__global__ void adaptive_forward_kernel(T* y, const T* x, const Shape s, const Units units) {
  using A = Accumulate<T>;
  store_sums<V>(y, s.outputs(), units, [&](A(&sum)[V], int64_t n, const Units::Position& at) {
    const T* const image = x + n * s.inputs() + at.channel;
    const Range rows = adaptive_range(at.row, s.H, s.P), columns = adaptive_range(at.column, s.W, s.Q);
    for (int h = rows.first; h < rows.end; ++h) {
      A of_row[V];  // partial sums per row reduce rounding
      for (int i = 0; i < V; ++i) of_row[i] = A(0);
#pragma unroll 4
      for (int q = columns.first; q < columns.end; ++q) {
        const Vec<T, V> values = Vec<T, V>::load(image + (h * s.W + q) * s.C);
        for (int i = 0; i < V; ++i) of_row[i] += from<A>(values[i]);
      }
      for (int i = 0; i < V; ++i) sum[i] += of_row[i];
    }
    const int count = (rows.end - rows.first) * (columns.end - columns.first);
    for (int i = 0; i < V; ++i) sum[i] /= static_cast<A>(count);
  });
}

template <int V, class T>
__global__ void adaptive_backward_kernel(T* dx, const T* dy, const Shape s, const Units units) {
  using A = Accumulate<T>;
  store_sums<V>(dx, s.inputs(), units, [&](A(&sum)[V], int64_t n, const Units::Position& at) {
    const T* const slopes = dy + n * s.outputs() + at.channel;
    // Spans start at floor(p size / count): the outputs that cover a row are neighbours around row count / size.
    const Range rows_p = adaptive_range(at.row, s.P, s.H), columns_q = adaptive_range(at.column, s.Q, s.W);
    for (int p = rows_p.first; p < rows_p.end; ++p) {
      const Range rows = adaptive_range(p, s.H, s.P);
      for (int q = columns_q.first; q < columns_q.end; ++q) {
        const Range columns = adaptive_range(q, s.W, s.Q);
        const A share = A(1) / static_cast<A>((rows.end - rows.first) * (columns.end - columns.first));
        const Vec<T, V> values = Vec<T, V>::load(slopes + (p * s.Q + q) * s.C);
        for (int i = 0; i < V; ++i) sum[i] += from<A>(values[i]) * share;
      }
    }
  });
}

/// Calls `body.operator()<V>(grid, units)` for images [N, rows, columns, C] in units of V channels.
template <class T, class Body>
void with_units(const Shape& s, int rows, int columns, std::initializer_list<const View*> views, Body&& body) {
  const int64_t count = int64_t{rows} * columns * s.C;
  if (s.N * count == 0) return;
  bool wide = s.C % kVecSize<T> == 0;
  for (const View* view : views) wide = wide && reinterpret_cast<uintptr_t>(view->data) % 16 == 0;
  const auto with = [&]<int V>() {
    const auto units = static_cast<int>(count / V);
    constexpr int64_t kMost = 65535;
    const dim3 grid(static_cast<unsigned>((units + kThreads - 1) / kThreads),
                    static_cast<unsigned>(std::min(s.N, kMost)));
    body.template operator()<V>(grid, Units{units, s.N, Divider(s.C / V), Divider(columns)});
  };
  if (wide)
    with.template operator()<kVecSize<T>>();
  else
    with.template operator()<1>();
}

}  // namespace

void max_pool2d_forward(const Queue& queue, const View& y, const View& index, const View& x,
                        Pool2dArguments arguments) {
  const Shape s = shape_of("max_pool2d_forward", y, x);
  with_dtype<float, bf16, f16, double>(x.dtype, "max_pool2d_forward", [&]<class T>() {
    with_units<T>(s, s.P, s.Q, {&y, &index, &x}, [&]<int V>(dim3 grid, const Units& units) {
      launch(queue, "max_pool2d_forward", grid, dim3(kThreads), 0, &max_forward_kernel<V, T>, y.as<T>(),
             index.as<int32_t>(), static_cast<const T*>(x.data), s, window_of(arguments), units);
    });
  });
}

void max_pool2d_backward(const Queue& queue, const View& dx, const View& dy, const View& index,
                         Pool2dArguments arguments) {
  const Shape s = shape_of("max_pool2d_backward", dy, dx);
  with_dtype<float, bf16, f16, double>(dx.dtype, "max_pool2d_backward", [&]<class T>() {
    with_units<T>(s, s.H, s.W, {&dx, &dy, &index}, [&]<int V>(dim3 grid, const Units& units) {
      launch(queue, "max_pool2d_backward", grid, dim3(kThreads), 0, &max_backward_kernel<V, T>, dx.as<T>(),
             static_cast<const T*>(dy.data), static_cast<const int32_t*>(index.as<int32_t>()), s, window_of(arguments),
             units);
    });
  });
}

void avg_pool2d_forward(const Queue& queue, const View& y, const View& x, Pool2dArguments arguments) {
  const Shape s = shape_of("avg_pool2d_forward", y, x);
  with_dtype<float, bf16, f16, double>(x.dtype, "avg_pool2d_forward", [&]<class T>() {
    with_units<T>(s, s.P, s.Q, {&y, &x}, [&]<int V>(dim3 grid, const Units& units) {
      launch(queue, "avg_pool2d_forward", grid, dim3(kThreads), 0, &avg_forward_kernel<V, T>, y.as<T>(),
             static_cast<const T*>(x.data), s, window_of(arguments), arguments.count_include_pad, units);
    });
  });
}

void avg_pool2d_backward(const Queue& queue, const View& dx, const View& dy, Pool2dArguments arguments) {
  const Shape s = shape_of("avg_pool2d_backward", dy, dx);
  with_dtype<float, bf16, f16, double>(dx.dtype, "avg_pool2d_backward", [&]<class T>() {
    with_units<T>(s, s.H, s.W, {&dx, &dy}, [&]<int V>(dim3 grid, const Units& units) {
      launch(queue, "avg_pool2d_backward", grid, dim3(kThreads), 0, &avg_backward_kernel<V, T>, dx.as<T>(),
             static_cast<const T*>(dy.data), s, window_of(arguments), arguments.count_include_pad, units);
    });
  });
}

void adaptive_avg_pool2d_forward(const Queue& queue, const View& y, const View& x) {
  const Shape s = shape_of("adaptive_avg_pool2d_forward", y, x);
  if (s.P == 1 && s.Q == 1 && s.H * s.W > 32) return reduce(queue, Reduce::mean, y, x);  // splits long sums
  with_dtype<float, bf16, f16, double>(x.dtype, "adaptive_avg_pool2d_forward", [&]<class T>() {
    with_units<T>(s, s.P, s.Q, {&y, &x}, [&]<int V>(dim3 grid, const Units& units) {
      launch(queue, "adaptive_avg_pool2d_forward", grid, dim3(kThreads), 0, &adaptive_forward_kernel<V, T>, y.as<T>(),
             static_cast<const T*>(x.data), s, units);
    });
  });
}

void adaptive_avg_pool2d_backward(const Queue& queue, const View& dx, const View& dy) {
  const Shape s = shape_of("adaptive_avg_pool2d_backward", dy, dx);
  with_dtype<float, bf16, f16, double>(dx.dtype, "adaptive_avg_pool2d_backward", [&]<class T>() {
    with_units<T>(s, s.H, s.W, {&dx, &dy}, [&]<int V>(dim3 grid, const Units& units) {
      launch(queue, "adaptive_avg_pool2d_backward", grid, dim3(kThreads), 0, &adaptive_backward_kernel<V, T>,
             dx.as<T>(), static_cast<const T*>(dy.data), s, units);
    });
  });
}

}  // namespace weft::kernels::cuda
