// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/index.h"

#include <algorithm>

#include "kernels/contracts/sort.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/cuda/wrong_index.cuh"
#include "kernels/runtime/allocator.h"
#include "kernels/with_bits.h"

// A tensor is [outer, D, inner] around the indexed dimension. Grid-stride, 256 threads per block, no barrier.
// index_select, gather: a thread owns one unit of y: 16 bytes of raw bits if index_select's inner rows allow, else one
// element. A read and a write of each byte, 85% of the bandwidth for rows of 128 bytes and more.
// index_select_backward: the sources of a row form a chain, next[i] = the next position with the same index, found by
//   sorting the positions. Then one thread per element of a row with sources walks the chain in order. The walk
//   reads dy once; dx is filled with zeros before.
// gather_backward: a thread per element of dx scans the positions of its line and adds dy where the element was read.
// index_put: an atomic maximum finds the last of equal positions; then one thread per element of values.
// ravel_index: one thread per element.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 256;

struct Shape {
  int64_t outer = 1, D = 1, inner = 1;  // sizes of x
  int64_t I = 0;                        // positions along dim in y
};

Shape shape_of(const View& x, int dim, int64_t positions) {
  Shape s;
  for (int d = 0; d < dim; ++d) s.outer *= x.sizes[d];
  s.D = x.sizes[dim];
  for (int d = dim + 1; d < x.rank; ++d) s.inner *= x.sizes[d];
  s.I = positions;
  return s;
}

void check(const char* name, const View& y, const View& x, const View& index, int dim) {
  WEFT_CHECK(dim >= 0 && dim < x.rank && y.rank == x.rank, name, ": expected a dimension of ", x, ", got ", dim);
  WEFT_CHECK(y.is_contiguous() && x.is_contiguous() && index.is_contiguous() && index.dtype == DType::i64 &&
                 y.dtype == x.dtype,
             name, ": expected contiguous tensors of one dtype and an i64 index, got ", y, ", ", x, " and ", index);
  for (int d = 0; d < x.rank; ++d)
    WEFT_CHECK(d == dim || y.sizes[d] == x.sizes[d], name, ": expected equal sizes but for dimension ", dim, ", got ",
               y, " and ", x);
}

/// The byte that fills the result of an index out of range: all ones is NaN in every floating format.
uint8_t outside_byte(DType dtype) { return is_floating(dtype) ? 0xff : 0x00; }

template <class Bits>
__device__ Bits outside_bits(uint8_t byte) {
  return byte != 0 ? static_cast<Bits>(~static_cast<Bits>(0)) : static_cast<Bits>(0);
}

WrongIndexReport report_of(const Queue& queue, const char* op, const Shape& s) {
  return {wrong_index_record(queue.device), {.text = WrongIndex::Text::position, .op = op, .limit = s.D}};
}

template <int V, class Bits>
__global__ void select_kernel(Bits* y, const Bits* x, const int64_t* index, const Shape s, const uint8_t outside,
                              const WrongIndexReport report) {
  const int64_t per_row = s.inner / V, units = s.outer * s.I * per_row;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const int64_t row = unit / per_row, column = (unit - row * per_row) * V;
    const int64_t outer = row / s.I, from_row = index[row - outer * s.I];
    Vec<Bits, V> values;
    if (from_row >= 0 && from_row < s.D) {
      values = Vec<Bits, V>::load(x + (outer * s.D + from_row) * s.inner + column);
    } else {
      for (int i = 0; i < V; ++i) values[i] = outside_bits<Bits>(outside);
      report(from_row, row - outer * s.I);
    }
    values.store(y + unit * V);
  }
}

template <class Bits>
__global__ void gather_kernel(Bits* y, const Bits* x, const int64_t* index, const Shape s, const uint8_t outside,
                              const WrongIndexReport report) {
  const int64_t n = s.outer * s.I * s.inner, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t row = i / s.inner, column = i - row * s.inner, outer = row / s.I, at = index[i];
    const bool inside = at >= 0 && at < s.D;
    y[i] = inside ? x[(outer * s.D + at) * s.inner + column] : outside_bits<Bits>(outside);
    if (!inside) report(at, i);
  }
}

/// Builds the chains from the stably sorted indices (`places`: original positions): next[i] = the smallest j > i with
/// index[j] == index[i], or I. head[i] = 1 if i is the first position of its index.
__global__ void chain_kernel(int64_t* next, uint8_t* head, const int64_t* sorted, const int64_t* places, int64_t I) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t k = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < I; k += step) {
    next[places[k]] = k + 1 < I && sorted[k + 1] == sorted[k] ? places[k + 1] : I;
    head[places[k]] = k == 0 || sorted[k - 1] != sorted[k];
  }
}

template <class T>
__global__ void select_backward_kernel(T* dx, const T* dy, const int64_t* index, const int64_t* next,
                                       const uint8_t* head, const Shape s) {
  using A = Accumulate<T>;
  const int64_t n = s.outer * s.I * s.inner, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t row = i / s.inner, column = i - row * s.inner, outer = row / s.I, position = row - outer * s.I;
    const int64_t at = index[position];
    if (head[position] == 0 || at < 0 || at >= s.D) continue;
    A sum = 0;
    for (int64_t k = position; k < s.I; k = next[k]) sum += from<A>(dy[(outer * s.I + k) * s.inner + column]);
    dx[(outer * s.D + at) * s.inner + column] = to<T>(sum);
  }
}

template <class T>
__global__ void zero_kernel(T* dx, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) dx[i] = to<T>(0.0f);
}

template <class T>
__global__ void gather_backward_kernel(T* dx, const T* dy, const int64_t* index, const Shape s) {
  using A = Accumulate<T>;
  const int64_t n = s.outer * s.D * s.inner, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t row = i / s.inner, column = i - row * s.inner, outer = row / s.D, here = row - outer * s.D;
    const int64_t line = outer * s.I * s.inner + column;
    A sum = 0;
    for (int64_t k = 0; k < s.I; ++k)
      if (index[line + k * s.inner] == here) sum += from<A>(dy[line + k * s.inner]);
    dx[i] = to<T>(sum);
  }
}

/// last[p] = 1 + the last i with index[i] == p: a maximum, independent of the order of threads.
__global__ void claim_kernel(unsigned long long* last, const int64_t* index, int64_t I, int64_t D,
                             const WrongIndexReport report) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < I; i += step) {
    if (index[i] >= 0 && index[i] < D)
      atomicMax(&last[index[i]], static_cast<unsigned long long>(i + 1));
    else
      report(index[i], i);
  }
}

template <class Bits>
__global__ void put_kernel(Bits* y, const Bits* values, const int64_t* index, const unsigned long long* last,
                           const Shape s) {
  const int64_t n = s.I * s.inner, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t row = i / s.inner, at = index[row];
    if (at < 0 || at >= s.D || last[at] != static_cast<unsigned long long>(row + 1)) continue;
    y[at * s.inner + i - row * s.inner] = values[i];
  }
}

__global__ void ravel_kernel(int64_t* y, const int64_t* index, int64_t n, int64_t size, const WrongIndexReport report) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t at = index[i];
    const bool inside = at >= -size && at < size;
    if (!inside) report(at, i);
    y[i] = !inside || y[i] < 0 ? -1 : y[i] * size + (at < 0 ? at + size : at);
  }
}

template <class Bits>
void select_bits(const Queue& queue, const View& y, const View& x, const View& index, const Shape& s) {
  constexpr int V = 16 / sizeof(Bits);
  const auto go = [&](auto kernel, int v) {
    launch(queue, "index_select", dim3(blocks_for(s.outer * s.I * s.inner / v, kThreads)), dim3(kThreads), 0, kernel,
           static_cast<Bits*>(y.data), static_cast<const Bits*>(x.data), static_cast<const int64_t*>(index.data), s,
           outside_byte(y.dtype), report_of(queue, "index_select", s));
  };
  const bool aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && reinterpret_cast<uintptr_t>(y.data) % 16 == 0;
  if (aligned && s.inner % V == 0)
    go(&select_kernel<V, Bits>, V);
  else
    go(&select_kernel<1, Bits>, 1);
}

template <class Bits>
void gather_bits(const Queue& queue, const View& y, const View& x, const View& index, const Shape& s) {
  launch(queue, "gather", dim3(blocks_for(y.numel(), kThreads)), dim3(kThreads), 0, &gather_kernel<Bits>,
         static_cast<Bits*>(y.data), static_cast<const Bits*>(x.data), static_cast<const int64_t*>(index.data), s,
         outside_byte(y.dtype), report_of(queue, "gather", s));
}

}  // namespace

void index_select(const Queue& queue, const View& y, const View& x, const View& index, int dim) {
  check("index_select", y, x, index, dim);
  WEFT_CHECK(index.numel() == y.sizes[dim], "index_select: expected ", y.sizes[dim], " positions, got ", index);
  const Shape s = shape_of(x, dim, index.numel());
  if (y.numel() == 0) return;
  with_bits(y.dtype, [&]<class Bits>() { select_bits<Bits>(queue, y, x, index, s); });
}

void index_select_backward(const Queue& queue, const View& dx, const View& dy, const View& index, int dim) {
  check("index_select_backward", dx, dy, index, dim);
  WEFT_CHECK(index.numel() == dy.sizes[dim], "index_select_backward: expected ", dy.sizes[dim], " positions, got ",
             index);
  const Shape s = shape_of(dx, dim, index.numel());
  const int64_t n = dx.numel();
  if (n == 0) return;
  with_dtype<float, bf16, f16, double>(dx.dtype, "index_select_backward", [&]<class T>() {
    launch(queue, "index_select_backward (zero)", dim3(blocks_for(n, kThreads)), dim3(kThreads), 0, &zero_kernel<T>,
           dx.as<T>(), n);
    if (s.I == 0) return;
    const Workspace chain(queue, static_cast<size_t>(s.I) * (3 * sizeof(int64_t) + 1), "index_select_backward");
    int64_t* next = chain.template as<int64_t>();
    int64_t *sorted = next + s.I, *places = sorted + s.I;
    uint8_t* head = reinterpret_cast<uint8_t*>(places + s.I);
    sort(queue, View::dense(sorted, DType::i64, {s.I}), View::dense(places, DType::i64, {s.I}),
         View::dense(index.data, DType::i64, {s.I}), false);
    launch(queue, "index_select_backward (chain)", dim3(blocks_for(s.I, kThreads)), dim3(kThreads), 0, &chain_kernel,
           next, head, static_cast<const int64_t*>(sorted), static_cast<const int64_t*>(places), s.I);
    launch(queue, "index_select_backward", dim3(blocks_for(dy.numel(), kThreads)), dim3(kThreads), 0,
           &select_backward_kernel<T>, dx.as<T>(), static_cast<const T*>(dy.data),
           static_cast<const int64_t*>(index.data), static_cast<const int64_t*>(next),
           static_cast<const uint8_t*>(head), s);
  });
}

void gather(const Queue& queue, const View& y, const View& x, const View& index, int dim) {
  check("gather", y, x, index, dim);
  WEFT_CHECK(index.same_sizes(y), "gather: expected an index of the output's sizes ", y, ", got ", index);
  const Shape s = shape_of(x, dim, y.sizes[dim]);
  with_bits(y.dtype, [&]<class Bits>() { gather_bits<Bits>(queue, y, x, index, s); });
}

void gather_backward(const Queue& queue, const View& dx, const View& dy, const View& index, int dim) {
  check("gather_backward", dx, dy, index, dim);
  WEFT_CHECK(index.same_sizes(dy), "gather_backward: expected an index of the sizes of ", dy, ", got ", index);
  const Shape s = shape_of(dx, dim, dy.sizes[dim]);
  with_dtype<float, bf16, f16, double>(dx.dtype, "gather_backward", [&]<class T>() {
    launch(queue, "gather_backward", dim3(blocks_for(dx.numel(), kThreads)), dim3(kThreads), 0,
           &gather_backward_kernel<T>, dx.as<T>(), static_cast<const T*>(dy.data),
           static_cast<const int64_t*>(index.data), s);
  });
}

void index_put(const Queue& queue, const View& y, const View& values, const View& index) {
  check("index_put", values, y, index, 0);
  WEFT_CHECK(index.numel() == values.sizes[0], "index_put: expected ", values.sizes[0], " positions, got ", index);
  const Shape s = shape_of(y, 0, values.sizes[0]);
  if (values.numel() == 0) return;
  const Workspace memory(queue, static_cast<size_t>(s.D) * sizeof(unsigned long long), "index_put");
  auto* const last = memory.as<unsigned long long>();
  const auto* const positions = static_cast<const int64_t*>(index.data);
  launch(queue, "index_put (zero)", dim3(blocks_for(s.D, kThreads)), dim3(kThreads), 0,
         &zero_kernel<unsigned long long>, last, s.D);
  launch(queue, "index_put (claim)", dim3(blocks_for(s.I, kThreads)), dim3(kThreads), 0, &claim_kernel, last, positions,
         s.I, s.D, report_of(queue, "index_put", s));
  with_bits(y.dtype, [&]<class Bits>() {
    launch(queue, "index_put", dim3(blocks_for(s.I * s.inner, kThreads)), dim3(kThreads), 0, &put_kernel<Bits>,
           static_cast<Bits*>(y.data), static_cast<const Bits*>(values.data), positions,
           static_cast<const unsigned long long*>(last), s);
  });
}

void ravel_index(const Queue& queue, const View& y, const View& index, int64_t size) {
  WEFT_CHECK(y.same_sizes(index) && y.is_contiguous() && index.is_contiguous(),
             "ravel_index: expected contiguous tensors of equal sizes, got ", y, " and ", index);
  launch(queue, "ravel_index", dim3(blocks_for(y.numel(), kThreads)), dim3(kThreads), 0, &ravel_kernel, y.as<int64_t>(),
         static_cast<const int64_t*>(index.as<int64_t>()), y.numel(), size,
         WrongIndexReport{wrong_index_record(queue.device),
                          {.text = WrongIndex::Text::from_either_end, .op = "index", .limit = size}});
}

namespace {

struct Sizes {
  int rank = 0;
  int64_t size[kMaxRank] = {};
};

// Grid-stride, 256 threads per block, no barrier. A thread owns an element of x; if it is true, the prefix sum gives
// its row of y. Bytes per element: 9 read, 8 rank written if true. 70% of the bandwidth.
__global__ void nonzero_kernel(int64_t* y, const bool* x, const int64_t* ends, int64_t n, const Sizes sizes) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    if (!x[i]) continue;
    int64_t rest = i;
    for (int d = sizes.rank - 1; d >= 0; --d) {
      const int64_t outer = rest / sizes.size[d];
      y[(ends[i] - 1) * sizes.rank + d] = rest - outer * sizes.size[d];
      rest = outer;
    }
  }
}

}  // namespace

void nonzero(const Queue& queue, const View& y, const View& x, const View& ends) {
  WEFT_CHECK(y.rank == 2 && y.sizes[1] == x.rank && ends.numel() == x.numel() && y.is_contiguous() &&
                 x.is_contiguous() && ends.is_contiguous(),
             "nonzero: expected contiguous tensors y [count, ", x.rank, "] and ends [", x.numel(), "], got ", y,
             " and ", ends);
  Sizes sizes{x.rank, {}};
  for (int d = 0; d < x.rank; ++d) sizes.size[d] = x.sizes[d];
  launch(queue, "nonzero", dim3(blocks_for(x.numel(), kThreads)), dim3(kThreads), 0, &nonzero_kernel, y.as<int64_t>(),
         static_cast<const bool*>(x.as<bool>()), static_cast<const int64_t*>(ends.as<int64_t>()), x.numel(), sizes);
}

}  // namespace weft::kernels::cuda
