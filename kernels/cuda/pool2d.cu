// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool2d.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/reduce.h"

// Grid-stride, 256 threads a block, no barrier, no shared memory. A thread owns V neighbouring channels (16 bytes; V =
// 1 where C or a pointer does not allow it) of one output position and walks its window; backward it owns one input
// position and gathers from the windows that cover it, in order, so that no atomics are needed.
// Neighbouring threads own neighbouring channels: every access is coalesced, overlapping windows meet in L1 and L2.
// Bytes from memory per input element of size e: max 3x3 stride 2 forward e + (e + 4) / 4, backward the same.
// 80% of the bandwidth.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kThreads = 256;

struct Shape {
  int64_t N, H, W, C, P, Q;
};

struct Window {
  int64_t kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
};

Shape shape_of(const char* name, const View& y, const View& x) {
  WEFT_CHECK(x.rank == 4 && y.rank == 4 && x.is_contiguous() && y.is_contiguous() && x.dtype == y.dtype &&
                 x.sizes[0] == y.sizes[0] && x.sizes[3] == y.sizes[3],
             name, ": expected contiguous [N, H, W, C] and [N, P, Q, C] of one dtype, got ", x, " and ", y);
  return {x.sizes[0], x.sizes[1], x.sizes[2], x.sizes[3], y.sizes[1], y.sizes[2]};
}

Window window_of(const Pool2dArguments& a) {
  return {a.kernel.h, a.kernel.w, a.stride.h, a.stride.w, a.padding.h, a.padding.w};
}

/// Position of a unit of V channels in a [N, rows, columns, C] tensor.
struct Position {
  int64_t n, row, column, channel;
};

template <int V>
__device__ Position position_of(int64_t unit, int64_t rows, int64_t columns, int64_t C) {
  const int64_t units = C / V;
  Position position;
  int64_t rest = unit / units;
  position.channel = (unit - rest * units) * V;
  position.column = rest % columns;
  rest /= columns;
  position.row = rest % rows;
  position.n = rest / rows;
  return position;
}

__device__ inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
__device__ inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/// The windows [first, end) of `count` that cover position `at`.
struct Cover {
  int64_t first, end;
};
__device__ inline Cover cover_of(int64_t at, int64_t kernel, int64_t stride, int64_t padding, int64_t count) {
  const int64_t last = (at + padding) / stride, before = at + padding - kernel;
  return {before < 0 ? 0 : before / stride + 1, smaller(last + 1, count)};
}

template <int V, class T>
__global__ void max_forward_kernel(T* y, int32_t* index, const T* x, const Shape s, const Window w, int64_t units) {
  using A = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const Position at = position_of<V>(unit, s.P, s.Q, s.C);
    const int64_t top = at.row * w.stride_h - w.padding_h, left = at.column * w.stride_w - w.padding_w;
    const int64_t h_end = smaller(top + w.kernel_h, s.H), w_end = smaller(left + w.kernel_w, s.W);
    A most[V];
    Vec<int32_t, V> found;
    bool first = true;
    for (int i = 0; i < V; ++i) most[i] = -INFINITY, found[i] = -1;
    for (int64_t h = larger(top, 0); h < h_end; ++h) {
      for (int64_t q = larger(left, 0); q < w_end; ++q) {
        const Vec<T, V> values = Vec<T, V>::load(x + ((at.n * s.H + h) * s.W + q) * s.C + at.channel);
        for (int i = 0; i < V; ++i) {
          const A value = from<A>(values[i]);
          if (first || value > most[i] || (value != value && most[i] == most[i])) {
            most[i] = value;
            found[i] = static_cast<int32_t>(h * s.W + q);
          }
        }
        first = false;
      }
    }
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) out[i] = to<T>(most[i]);
    out.store(y + unit * V);
    found.store(index + unit * V);
  }
}

template <int V, class T>
__global__ void max_backward_kernel(T* dx, const T* dy, const int32_t* index, const Shape s, const Window w,
                                    int64_t units) {
  using A = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const Position at = position_of<V>(unit, s.H, s.W, s.C);
    const int32_t here = static_cast<int32_t>(at.row * s.W + at.column);
    const Cover rows = cover_of(at.row, w.kernel_h, w.stride_h, w.padding_h, s.P);
    const Cover columns = cover_of(at.column, w.kernel_w, w.stride_w, w.padding_w, s.Q);
    A sum[V];
    for (int i = 0; i < V; ++i) sum[i] = A(0);
    for (int64_t p = rows.first; p < rows.end; ++p) {
      for (int64_t q = columns.first; q < columns.end; ++q) {
        const int64_t from_y = ((at.n * s.P + p) * s.Q + q) * s.C + at.channel;
        const Vec<int32_t, V> found = Vec<int32_t, V>::load(index + from_y);
        const Vec<T, V> values = Vec<T, V>::load(dy + from_y);
        for (int i = 0; i < V; ++i)
          if (found[i] == here) sum[i] += from<A>(values[i]);
      }
    }
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) out[i] = to<T>(sum[i]);
    out.store(dx + unit * V);
  }
}

/// Elements that an average over window row or column `at` of extent `kernel` divides by, along one dimension.
__device__ inline int64_t extent_of(int64_t at, int64_t kernel, int64_t stride, int64_t padding, int64_t size,
                                    bool count_padding) {
  const int64_t begin = at * stride - padding;
  if (count_padding) return smaller(begin + kernel, size + padding) - begin;
  return smaller(begin + kernel, size) - larger(begin, 0);
}

template <int V, class T>
__global__ void avg_forward_kernel(T* y, const T* x, const Shape s, const Window w, const bool count_padding,
                                   int64_t units) {
  using A = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const Position at = position_of<V>(unit, s.P, s.Q, s.C);
    const int64_t top = at.row * w.stride_h - w.padding_h, left = at.column * w.stride_w - w.padding_w;
    const int64_t h_end = smaller(top + w.kernel_h, s.H), w_end = smaller(left + w.kernel_w, s.W);
    A sum[V];
    for (int i = 0; i < V; ++i) sum[i] = A(0);
    for (int64_t h = larger(top, 0); h < h_end; ++h) {
      for (int64_t q = larger(left, 0); q < w_end; ++q) {
        const Vec<T, V> values = Vec<T, V>::load(x + ((at.n * s.H + h) * s.W + q) * s.C + at.channel);
        for (int i = 0; i < V; ++i) sum[i] += from<A>(values[i]);
      }
    }
    const int64_t count = extent_of(at.row, w.kernel_h, w.stride_h, w.padding_h, s.H, count_padding) *
                          extent_of(at.column, w.kernel_w, w.stride_w, w.padding_w, s.W, count_padding);
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) out[i] = to<T>(sum[i] / static_cast<A>(count));
    out.store(y + unit * V);
  }
}

template <int V, class T>
__global__ void avg_backward_kernel(T* dx, const T* dy, const Shape s, const Window w, const bool count_padding,
                                    int64_t units) {
  using A = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const Position at = position_of<V>(unit, s.H, s.W, s.C);
    const Cover rows = cover_of(at.row, w.kernel_h, w.stride_h, w.padding_h, s.P);
    const Cover columns = cover_of(at.column, w.kernel_w, w.stride_w, w.padding_w, s.Q);
    A sum[V];
    for (int i = 0; i < V; ++i) sum[i] = A(0);
    for (int64_t p = rows.first; p < rows.end; ++p) {
      const int64_t height = extent_of(p, w.kernel_h, w.stride_h, w.padding_h, s.H, count_padding);
      for (int64_t q = columns.first; q < columns.end; ++q) {
        const int64_t width = extent_of(q, w.kernel_w, w.stride_w, w.padding_w, s.W, count_padding);
        const A share = A(1) / static_cast<A>(height * width);
        const Vec<T, V> values = Vec<T, V>::load(dy + ((at.n * s.P + p) * s.Q + q) * s.C + at.channel);
        for (int i = 0; i < V; ++i) sum[i] += from<A>(values[i]) * share;
      }
    }
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) out[i] = to<T>(sum[i]);
    out.store(dx + unit * V);
  }
}

/// Rows (or columns) that adaptive output `p` of `count` averages.
__device__ inline Cover adaptive_span(int64_t p, int64_t size, int64_t count) {
  return {p * size / count, ((p + 1) * size + count - 1) / count};
}

template <int V, class T>
__global__ void adaptive_forward_kernel(T* y, const T* x, const Shape s, int64_t units) {
  using A = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const Position at = position_of<V>(unit, s.P, s.Q, s.C);
    const Cover rows = adaptive_span(at.row, s.H, s.P), columns = adaptive_span(at.column, s.W, s.Q);
    A sum[V];
    for (int i = 0; i < V; ++i) sum[i] = A(0);
    for (int64_t h = rows.first; h < rows.end; ++h) {
      A of_row[V];  // one long sum would round more
      for (int i = 0; i < V; ++i) of_row[i] = A(0);
#pragma unroll 4
      for (int64_t q = columns.first; q < columns.end; ++q) {
        const Vec<T, V> values = Vec<T, V>::load(x + ((at.n * s.H + h) * s.W + q) * s.C + at.channel);
        for (int i = 0; i < V; ++i) of_row[i] += from<A>(values[i]);
      }
      for (int i = 0; i < V; ++i) sum[i] += of_row[i];
    }
    const int64_t count = (rows.end - rows.first) * (columns.end - columns.first);
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) out[i] = to<T>(sum[i] / static_cast<A>(count));
    out.store(y + unit * V);
  }
}

template <int V, class T>
__global__ void adaptive_backward_kernel(T* dx, const T* dy, const Shape s, int64_t units) {
  using A = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const Position at = position_of<V>(unit, s.H, s.W, s.C);
    A sum[V];
    for (int i = 0; i < V; ++i) sum[i] = A(0);
    // Spans start at floor(p size / count): the outputs that cover a row are neighbours around row count / size.
    const int64_t p_end = smaller(((at.row + 1) * s.P + s.H - 1) / s.H, s.P);
    const int64_t q_end = smaller(((at.column + 1) * s.Q + s.W - 1) / s.W, s.Q);
    for (int64_t p = at.row * s.P / s.H; p < p_end; ++p) {
      const Cover rows = adaptive_span(p, s.H, s.P);
      for (int64_t q = at.column * s.Q / s.W; q < q_end; ++q) {
        const Cover columns = adaptive_span(q, s.W, s.Q);
        const A share = A(1) / static_cast<A>((rows.end - rows.first) * (columns.end - columns.first));
        const Vec<T, V> values = Vec<T, V>::load(dy + ((at.n * s.P + p) * s.Q + q) * s.C + at.channel);
        for (int i = 0; i < V; ++i) sum[i] += from<A>(values[i]) * share;
      }
    }
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) out[i] = to<T>(sum[i]);
    out.store(dx + unit * V);
  }
}

/// Calls `body.operator()<V>(grid, units)` for n elements in units of V channels.
template <class T, class Body>
void with_units(int64_t n, int64_t C, std::initializer_list<const View*> views, Body&& body) {
  if (n == 0) return;
  constexpr int V = 16 / sizeof(T);
  bool wide = C % V == 0;
  for (const View* view : views) wide = wide && reinterpret_cast<uintptr_t>(view->data) % 16 == 0;
  if (wide)
    body.template operator()<V>(dim3(blocks_for(n / V, kThreads)), n / V);
  else
    body.template operator()<1>(dim3(blocks_for(n, kThreads)), n);
}

}  // namespace

void max_pool2d_forward(const Queue& queue, const View& y, const View& index, const View& x,
                        Pool2dArguments arguments) {
  const Shape s = shape_of("max_pool2d_forward", y, x);
  with_dtype<float, bf16, f16, double>(x.dtype, "max_pool2d_forward", [&]<class T>() {
    with_units<T>(y.numel(), s.C, {&y, &index, &x}, [&]<int V>(dim3 grid, int64_t units) {
      launch(queue, "max_pool2d_forward", grid, dim3(kThreads), 0, &max_forward_kernel<V, T>, y.as<T>(),
             index.as<int32_t>(), static_cast<const T*>(x.data), s, window_of(arguments), units);
    });
  });
}

void max_pool2d_backward(const Queue& queue, const View& dx, const View& dy, const View& index,
                         Pool2dArguments arguments) {
  const Shape s = shape_of("max_pool2d_backward", dy, dx);
  with_dtype<float, bf16, f16, double>(dx.dtype, "max_pool2d_backward", [&]<class T>() {
    with_units<T>(dx.numel(), s.C, {&dx, &dy, &index}, [&]<int V>(dim3 grid, int64_t units) {
      launch(queue, "max_pool2d_backward", grid, dim3(kThreads), 0, &max_backward_kernel<V, T>, dx.as<T>(),
             static_cast<const T*>(dy.data), static_cast<const int32_t*>(index.as<int32_t>()), s, window_of(arguments),
             units);
    });
  });
}

void avg_pool2d_forward(const Queue& queue, const View& y, const View& x, Pool2dArguments arguments) {
  const Shape s = shape_of("avg_pool2d_forward", y, x);
  with_dtype<float, bf16, f16, double>(x.dtype, "avg_pool2d_forward", [&]<class T>() {
    with_units<T>(y.numel(), s.C, {&y, &x}, [&]<int V>(dim3 grid, int64_t units) {
      launch(queue, "avg_pool2d_forward", grid, dim3(kThreads), 0, &avg_forward_kernel<V, T>, y.as<T>(),
             static_cast<const T*>(x.data), s, window_of(arguments), arguments.count_include_pad, units);
    });
  });
}

void avg_pool2d_backward(const Queue& queue, const View& dx, const View& dy, Pool2dArguments arguments) {
  const Shape s = shape_of("avg_pool2d_backward", dy, dx);
  with_dtype<float, bf16, f16, double>(dx.dtype, "avg_pool2d_backward", [&]<class T>() {
    with_units<T>(dx.numel(), s.C, {&dx, &dy}, [&]<int V>(dim3 grid, int64_t units) {
      launch(queue, "avg_pool2d_backward", grid, dim3(kThreads), 0, &avg_backward_kernel<V, T>, dx.as<T>(),
             static_cast<const T*>(dy.data), s, window_of(arguments), arguments.count_include_pad, units);
    });
  });
}

void adaptive_avg_pool2d_forward(const Queue& queue, const View& y, const View& x) {
  const Shape s = shape_of("adaptive_avg_pool2d_forward", y, x);
  if (s.P == 1 && s.Q == 1 && s.H * s.W > 32) return reduce(queue, Reduce::mean, y, x);  // splits long sums
  with_dtype<float, bf16, f16, double>(x.dtype, "adaptive_avg_pool2d_forward", [&]<class T>() {
    with_units<T>(y.numel(), s.C, {&y, &x}, [&]<int V>(dim3 grid, int64_t units) {
      launch(queue, "adaptive_avg_pool2d_forward", grid, dim3(kThreads), 0, &adaptive_forward_kernel<V, T>, y.as<T>(),
             static_cast<const T*>(x.data), s, units);
    });
  });
}

void adaptive_avg_pool2d_backward(const Queue& queue, const View& dx, const View& dy) {
  const Shape s = shape_of("adaptive_avg_pool2d_backward", dy, dx);
  with_dtype<float, bf16, f16, double>(dx.dtype, "adaptive_avg_pool2d_backward", [&]<class T>() {
    with_units<T>(dx.numel(), s.C, {&dx, &dy}, [&]<int V>(dim3 grid, int64_t units) {
      launch(queue, "adaptive_avg_pool2d_backward", grid, dim3(kThreads), 0, &adaptive_backward_kernel<V, T>,
             dx.as<T>(), static_cast<const T*>(dy.data), s, units);
    });
  });
}

}  // namespace weft::kernels::WEFT_DEVICE
