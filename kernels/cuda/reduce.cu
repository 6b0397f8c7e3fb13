// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/reduce.h"

#include <algorithm>

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/runtime/allocator.h"

// The dimensions of x are divided into kept and reduced ones; each kind is sorted by x's strides and merged if
// possible, so that `outputs` sums of `length` elements remain.
//
// Grid: x = tiles of 256 / lanes outputs, y = splits of the length. Block: 256 threads, `lanes` threads per output:
//   lanes   1   a thread computes a whole sum (short sums)
//   lanes   8   columns: a warp's 32 threads read 32 neighbouring outputs of one row. 8 warps take every 8th row.
//   lanes  32   a warp reads along one dense row, 16 bytes per thread if aligned.
//   lanes 256   a block reads along one long dense row
// Shared: one accumulator per thread (columns) or per warp (block), 2 KiB at most.
// Splits give about 512 blocks on any GPU; a second launch adds them in order: no atomics, bit-identical results on
// every device and in every run. Cost: reads size_of(x) bytes and adds once per element; 85% of the bandwidth for large
// tensors.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 256, kWarp = 32, kColumns = 8, kWarps = kThreads / kWarp;
constexpr int64_t kBlocks = 512;
constexpr unsigned kAllLanes = 0xffffffffu;

struct Shape {
  int kept_rank = 0, reduced_rank = 0;  // dimension 0 is the innermost
  int64_t outputs = 1, length = 1;
  int64_t kept_size[kMaxRank] = {}, kept_x[kMaxRank] = {}, kept_y[kMaxRank] = {};
  int64_t reduced_size[kMaxRank] = {}, reduced_x[kMaxRank] = {};
};

struct Dim {
  int64_t size, x, y;
};

/// Sorts by x's strides, merges; returns the new count.
int merge(Dim* dims, int rank) {
  std::stable_sort(dims, dims + rank, [](const Dim& a, const Dim& b) { return std::abs(a.x) < std::abs(b.x); });
  int last = 0;
  for (int d = 1; d < rank; ++d) {
    Dim& inner = dims[last];
    if (dims[d].x == inner.x * inner.size && dims[d].y == inner.y * inner.size)
      inner.size *= dims[d].size;
    else
      dims[++last] = dims[d];
  }
  return rank == 0 ? 0 : last + 1;
}

Shape shape_of(const char* name, const View& y, const View& x) {
  WEFT_CHECK(y.rank == x.rank, name, ": expected an output of the input's rank, got ", y, " from ", x);
  Dim kept[kMaxRank], reduced[kMaxRank];
  Shape shape;
  for (int d = x.rank - 1; d >= 0; --d) {
    WEFT_CHECK(y.sizes[d] == x.sizes[d] || y.sizes[d] == 1, name, ": expected size 1 or equal sizes, got ", y, " from ",
               x);
    if (x.sizes[d] == 1) continue;
    if (y.sizes[d] == x.sizes[d])
      kept[shape.kept_rank++] = {x.sizes[d], x.strides[d], y.strides[d]};
    else
      reduced[shape.reduced_rank++] = {x.sizes[d], x.strides[d], 0};
  }
  shape.kept_rank = merge(kept, shape.kept_rank);
  shape.reduced_rank = merge(reduced, shape.reduced_rank);
  for (int d = 0; d < shape.kept_rank; ++d) {
    shape.outputs *= shape.kept_size[d] = kept[d].size;
    shape.kept_x[d] = kept[d].x;
    shape.kept_y[d] = kept[d].y;
  }
  for (int d = 0; d < shape.reduced_rank; ++d) {
    shape.length *= shape.reduced_size[d] = reduced[d].size;
    shape.reduced_x[d] = reduced[d].x;
  }
  return shape;
}

/// The mapping of threads to outputs and lengths.
struct Plan {
  int lanes;
  bool along;         // neighbouring threads are neighbours along the length, not along the outputs
  bool vectors;       // 16-byte reads
  int64_t per_split;  // elements of the length per block
  int64_t splits;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

Plan plan_for(const Shape& shape, const void* data, int64_t element_bytes) {
  Plan plan{1, false, false, shape.length, 1};
  const bool dense_length =
      shape.reduced_rank > 0 && (shape.kept_rank == 0 || shape.reduced_x[0] < shape.kept_x[0] || shape.kept_x[0] == 0);
  const int64_t v = 16 / element_bytes;
  if (dense_length && shape.length > 8) {
    plan.along = true;
    plan.lanes = shape.length >= 2048 ? kThreads : kWarp;
    plan.vectors = shape.reduced_rank == 1 && shape.reduced_x[0] == 1 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
    for (int d = 0; d < shape.kept_rank; ++d) plan.vectors = plan.vectors && shape.kept_x[d] % v == 0;
  } else if (shape.length >= 16) {
    plan.lanes = kColumns;
  }
  const int64_t tiles = ceil_div(shape.outputs, kThreads / plan.lanes);
  const int64_t quantum = plan.lanes * (plan.vectors ? v : 1);  // one iteration of all lanes
  const int64_t splits =
      std::clamp<int64_t>(kBlocks / std::max<int64_t>(tiles, 1), 1, std::max<int64_t>(shape.length / (quantum * 8), 1));
  if (splits > 1) {
    plan.per_split = ceil_div(ceil_div(shape.length, splits), quantum) * quantum;
    plan.splits = ceil_div(shape.length, plan.per_split);
  }
  return plan;
}

// Operations: how an element is added to an accumulator, and how two accumulators are combined.
template <class T>
struct Sum {
  using A = Compute<T>;
  static __device__ A first() { return A(0); }
  static __device__ A add(A sum, T x) { return sum + from<A>(x); }
  static __device__ A join(A a, A b) { return a + b; }
};
template <class T>
struct SumSquares : Sum<T> {
  using A = Compute<T>;
  static __device__ A add(A sum, T x) { return sum + from<A>(x) * from<A>(x); }
};
template <class T>
struct Prod {
  using A = Compute<T>;
  static __device__ A first() { return A(1); }
  static __device__ A join(A a, A b) { return a * b; }
  static __device__ A add(A product, T x) { return product * from<A>(x); }
};
template <class A>
__device__ A lowest() {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(-0x7fffffffffffffffLL - 1);
  else
    return static_cast<A>(-INFINITY);
}
template <class A>
__device__ A highest() {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(0x7fffffffffffffffLL);
  else
    return static_cast<A>(INFINITY);
}
template <class T>
struct Max {
  using A = Compute<T>;
  static __device__ A first() { return lowest<A>(); }
  static __device__ A join(A a, A b) { return a > b || a != a ? a : b; }
  static __device__ A add(A most, T x) { return join(most, from<A>(x)); }
};
template <class T>
struct Min {
  using A = Compute<T>;
  static __device__ A first() { return highest<A>(); }
  static __device__ A join(A a, A b) { return a < b || a != a ? a : b; }
  static __device__ A add(A least, T x) { return join(least, from<A>(x)); }
};

/// Applied to a finished accumulator.
struct Finish {
  double scale = 1;  // floating only
  bool root = false;
  DType dtype = DType::f32;
};

template <class A>
__device__ void store(void* y, int64_t at, A value, const Finish& finish) {
  if constexpr (std::is_floating_point_v<A>) {
    if (finish.scale != 1) value *= static_cast<A>(finish.scale);
    if (finish.root) value = sqrt(value);
  }
  switch (finish.dtype) {
    case DType::f32:
      static_cast<float*>(y)[at] = static_cast<float>(value);
      break;
    case DType::f64:
      static_cast<double*>(y)[at] = static_cast<double>(value);
      break;
    case DType::bf16:
      static_cast<bf16*>(y)[at] = to<bf16>(value);
      break;
    case DType::f16:
      static_cast<f16*>(y)[at] = to<f16>(value);
      break;
    case DType::i64:
      static_cast<int64_t*>(y)[at] = static_cast<int64_t>(value);
      break;
    default:
      static_cast<int32_t*>(y)[at] = static_cast<int32_t>(value);
      break;
  }
}

/// The accumulator over this lane's elements of [begin, end).
template <class Op, class T>
__device__ Compute<T> accumulate(const Shape& shape, const Plan& plan, const T* x, int64_t begin, int64_t end,
                                 int lane) {
  Compute<T> sum = Op::first();
  if (plan.vectors) {
    constexpr int V = 16 / sizeof(T);
    const int64_t whole = begin + (end - begin) / V * V;
#pragma unroll 4
    for (int64_t i = begin + lane * V; i < whole; i += static_cast<int64_t>(plan.lanes) * V) {
      const Vec<T, V> unit = Vec<T, V>::load(x + i);
      for (int k = 0; k < V; ++k) sum = Op::add(sum, unit[k]);
    }
    for (int64_t i = whole + lane; i < end; i += plan.lanes) sum = Op::add(sum, x[i]);
  } else if (shape.reduced_rank <= 1) {
    const int64_t stride = shape.reduced_x[0];
#pragma unroll 4
    for (int64_t i = begin + lane; i < end; i += plan.lanes) sum = Op::add(sum, x[i * stride]);
  } else {
    for (int64_t i = begin + lane; i < end; i += plan.lanes) {
      int64_t rest = i, offset = 0;
      for (int d = 0; d < shape.reduced_rank; ++d) {
        const int64_t next = rest / shape.reduced_size[d];
        offset += (rest - next * shape.reduced_size[d]) * shape.reduced_x[d];
        rest = next;
      }
      sum = Op::add(sum, x[offset]);
    }
  }
  return sum;
}

template <class Op, class T>
__global__ void reduce_kernel(void* y, Compute<T>* partial, const T* x, const Shape shape, const Plan plan,
                              const Finish finish) {
  using A = Compute<T>;
  __shared__ A shared[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int tile = kThreads / plan.lanes;
  const int lane = plan.along ? thread % plan.lanes : thread / tile;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * tile + (plan.along ? thread / plan.lanes : thread % tile);
  const int64_t split = blockIdx.y;
  const bool valid = output < shape.outputs;
  int64_t x_at = 0, y_at = 0, rest = valid ? output : 0;
  for (int d = 0; d < shape.kept_rank; ++d) {
    const int64_t next = rest / shape.kept_size[d], at = rest - next * shape.kept_size[d];
    x_at += at * shape.kept_x[d];
    y_at += at * shape.kept_y[d];
    rest = next;
  }
  const int64_t begin = split * plan.per_split;
  int64_t end = begin + plan.per_split < shape.length ? begin + plan.per_split : shape.length;
  if (!valid) end = begin;
  A sum = accumulate<Op>(shape, plan, x + x_at, begin, end, lane);

  if (plan.along) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      sum = Op::join(sum, __shfl_xor_sync(kAllLanes, sum, distance));
  }
  if (plan.lanes == kColumns || plan.lanes == kThreads) {
    // Columns: 8 accumulators per output for 32 outputs, in rows of shared memory. Block: one accumulator per warp.
    const int slot = plan.along ? thread / kWarp : thread;
    if (!plan.along || thread % kWarp == 0) shared[slot] = sum;
    __syncthreads();
    if (lane == 0) {
      const int stride = plan.along ? 1 : tile;
      sum = shared[plan.along ? 0 : thread];
      for (int k = 1; k < kWarps; ++k) sum = Op::join(sum, shared[(plan.along ? 0 : thread) + k * stride]);
    }
  }
  if (valid && lane == 0) {
    if (partial != nullptr)
      partial[split * shape.outputs + output] = sum;
    else
      store<A>(y, y_at, sum, finish);
  }
}

template <template <class> class First, template <class> class Join, class T>
void run(const Queue& queue, const View& y, const T* x, const Shape& shape, const Finish& finish) {
  using A = Compute<T>;
  if (shape.outputs == 0) return;
  const Plan plan = plan_for(shape, x, sizeof(T));
  const int64_t tiles = ceil_div(shape.outputs, kThreads / plan.lanes);
  WEFT_CHECK(tiles < (int64_t{1} << 31), "reduce: too many outputs: ", shape.outputs);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(plan.splits));
  if (plan.splits == 1)
    return launch(queue, "reduce", grid, dim3(kThreads), 0, &reduce_kernel<First<T>, T>, y.data,
                  static_cast<A*>(nullptr), x, shape, plan, finish);
  const Workspace partial(queue, static_cast<size_t>(plan.splits * shape.outputs) * sizeof(A), "reduce");
  launch(queue, "reduce (splits)", grid, dim3(kThreads), 0, &reduce_kernel<First<T>, T>, y.data,
         partial.template as<A>(), x, shape, plan, finish);
  Shape rest = shape;
  int64_t stride = 1;
  for (int d = 0; d < rest.kept_rank; ++d) {
    rest.kept_x[d] = stride;
    stride *= rest.kept_size[d];
  }
  rest.reduced_rank = 1;
  rest.length = rest.reduced_size[0] = plan.splits;
  rest.reduced_x[0] = shape.outputs;
  Plan join = plan_for(rest, partial.data(), sizeof(A));
  join.splits = 1;
  join.per_split = rest.length;
  launch(queue, "reduce (join)", dim3(static_cast<unsigned>(ceil_div(rest.outputs, kThreads / join.lanes))),
         dim3(kThreads), 0, &reduce_kernel<Join<A>, A>, y.data, static_cast<A*>(nullptr),
         static_cast<const A*>(partial.template as<A>()), rest, join, finish);
}

/// An element and its index.
template <class A>
struct Found {
  A value;
  int64_t index;
};

/// Whether (value, index) precedes the other: greater, or NaN, or equal with a smaller index.
template <class A>
__device__ bool wins(A value, int64_t index, A other, int64_t other_index) {
  const bool nan = value != value, other_nan = other != other;
  if (nan != other_nan) return nan;
  if (!nan && value != other) return value > other;
  return index < other_index;
}

/// A warp (lanes = 32) or a thread (lanes = 1) per output.
template <class T>
__global__ void argmax_kernel(int64_t* y, const T* x, const Shape shape, const int lanes) {
  using A = Compute<T>;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t output = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / lanes;
  const bool valid = output < shape.outputs;
  int64_t x_at = 0, y_at = 0, rest = valid ? output : 0;
  for (int d = 0; d < shape.kept_rank; ++d) {
    const int64_t next = rest / shape.kept_size[d], at = rest - next * shape.kept_size[d];
    x_at += at * shape.kept_x[d];
    y_at += at * shape.kept_y[d];
    rest = next;
  }
  Found<A> best{lowest<A>(), shape.length};
  for (int64_t i = lane; valid && i < shape.length; i += lanes) {
    const A value = from<A>(x[x_at + i * shape.reduced_x[0]]);
    if (wins(value, i, best.value, best.index)) best = {value, i};
  }
  if (lanes == kWarp) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      const A value = __shfl_xor_sync(kAllLanes, best.value, distance);
      const int64_t index = __shfl_xor_sync(kAllLanes, static_cast<long long>(best.index), distance);
      if (wins(value, index, best.value, best.index)) best = {value, index};
    }
  }
  if (valid && lane == 0) y[y_at] = best.index;
}

}  // namespace

void reduce(const Queue& queue, Reduce f, const View& y, const View& x) {
  const Shape shape = shape_of("reduce", y, x);
  const bool extreme = f == Reduce::max || f == Reduce::min;
  WEFT_CHECK(!extreme || shape.length > 0 || shape.outputs == 0, "reduce: max and min of nothing, from ", x);
  WEFT_CHECK(y.dtype == x.dtype || y.dtype == DType::f32, "reduce: expected ", x.dtype, " or f32, got ", y);
  WEFT_CHECK(is_floating(x.dtype) || (f != Reduce::mean && f != Reduce::norm),
             "reduce: expected a floating dtype, got ", x);
  Finish finish;
  finish.dtype = y.dtype;
  finish.root = f == Reduce::norm;
  if (f == Reduce::mean) finish.scale = 1.0 / static_cast<double>(shape.length);
  with_dtype<float, bf16, f16, double, int64_t, int32_t>(x.dtype, "reduce", [&]<class T>() {
    const T* data = static_cast<const T*>(x.data);
    switch (f) {
      case Reduce::sum:
      case Reduce::mean:
        return run<Sum, Sum>(queue, y, data, shape, finish);
      case Reduce::sum_squares:
      case Reduce::norm:
        return run<SumSquares, Sum>(queue, y, data, shape, finish);
      case Reduce::max:
        return run<Max, Max>(queue, y, data, shape, finish);
      case Reduce::min:
        return run<Min, Min>(queue, y, data, shape, finish);
      case Reduce::prod:
        return run<Prod, Prod>(queue, y, data, shape, finish);
    }
  });
}

void argmax(const Queue& queue, const View& y, const View& x, int dim) {
  WEFT_CHECK(y.dtype == DType::i64, "argmax: expected an i64 output, got ", y);
  Shape shape = shape_of("argmax", y, x);
  if (shape.outputs == 0) return;
  if (shape.reduced_rank == 0) shape.reduced_x[0] = 1;  // size 1 along dim: every index is 0
  WEFT_CHECK(dim >= 0 && dim < x.rank && y.sizes[dim] == 1 && shape.reduced_rank <= 1 && shape.length == x.sizes[dim],
             "argmax: expected an output of size 1 along dimension ", dim, " only, got ", y, " from ", x);
  WEFT_CHECK(shape.length > 0, "argmax: expected at least one element along dimension ", dim, ", got ", x);
  const int lanes = shape.reduced_x[0] == 1 && shape.length > 4 ? kWarp : 1;
  const int64_t blocks = ceil_div(shape.outputs, kThreads / lanes);
  with_dtype<float, bf16, f16, double, int64_t, int32_t, uint8_t>(x.dtype, "argmax", [&]<class T>() {
    launch(queue, "argmax", dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0, &argmax_kernel<T>,
           static_cast<int64_t*>(y.data), static_cast<const T*>(x.data), shape, lanes);
  });
}

}  // namespace weft::kernels::cuda
