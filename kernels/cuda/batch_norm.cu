// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"

#include <algorithm>

#include "kernels/allocator.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"

// x is [M, C]. All large kernels share one geometry:
//   block: 256 threads = `columns` x `rows`; a thread owns V neighbouring channels (16 bytes; V = 1 where C or a
//   pointer
//     does not allow it) and every rows-th row of its block's chunk, so channel constants stay in registers
//   grid: x = tiles of columns * V channels, y = chunks of rows
//
// forward    1. statistics: each thread a Welford mean and squared deviation of x - (its first x); Chan's formula joins
//               the threads of a column in shared memory (tree) and the chunks in 2.
//            2. finish: up to 32 lanes per channel join the chunks; running statistics move.
//            3. normalise (+ residual, ReLU).
// backward   1. sums of dy and dy xhat per channel and chunk, 2. finish, 3. dx and dresidual.
// shared (1. only): two accumulators per thread and channel, [256][V] each: 16 KiB for bf16.
//
// Bytes per element of size e: forward 3e (4e with a residual), backward 5e (+2e with ReLU, +e with dresidual); about 6
// flops each way. 80% of the bandwidth for M C of 10 MB and more. Deterministic: fixed chunks, no atomics.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kThreads = 256, kWarp = 32;
constexpr int64_t kBlocks = 512;  // chunks are made for about this many blocks, whatever the GPU
constexpr unsigned kAllLanes = 0xffffffffu;

struct Geometry2d {
  int64_t M, C;
  int columns, rows;  // columns * rows = 256
  int64_t per_chunk;  // rows of x for one block
  int64_t chunks;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

Geometry2d geometry_of(int64_t M, int64_t C, int v, int64_t rows_per_thread) {
  Geometry2d g{M, C, 1, kThreads, M, 1};
  while (g.columns < kWarp && g.columns * v < C) g.columns *= 2;
  g.rows = kThreads / g.columns;
  const int64_t tiles = ceil_div(C, static_cast<int64_t>(g.columns) * v);
  const int64_t most = ceil_div(M, g.rows * rows_per_thread);
  const int64_t chunks = std::clamp<int64_t>(kBlocks / tiles, 1, std::max<int64_t>(most, 1));
  g.per_chunk = ceil_div(ceil_div(M, chunks), g.rows) * g.rows;
  g.chunks = ceil_div(M, g.per_chunk);
  return g;
}

dim3 grid_of(const Geometry2d& g, int v) {
  return dim3(static_cast<unsigned>(ceil_div(g.C, static_cast<int64_t>(g.columns) * v)),
              static_cast<unsigned>(g.chunks));
}

/// Where a thread works.
struct Place {
  int64_t channel;     // its first
  int64_t first, end;  // rows: first, first + rows, …
  int row;
  bool valid;
};

template <int V>
__device__ Place place_of(const Geometry2d& g) {
  Place place;
  const int column = static_cast<int>(threadIdx.x) % g.columns;
  place.row = static_cast<int>(threadIdx.x) / g.columns;
  place.channel = (static_cast<int64_t>(blockIdx.x) * g.columns + column) * V;
  place.valid = place.channel < g.C;
  const int64_t begin = blockIdx.y * g.per_chunk;
  place.first = begin + place.row;
  place.end = begin + g.per_chunk < g.M ? begin + g.per_chunk : g.M;
  if (!place.valid) place.end = place.first;
  return place;
}

/// Chan et al. 1979: joins (n, mean, m2) of two sets into the first.
template <class A>
__device__ void join(A& n, A& mean, A& m2, A other_n, A other_mean, A other_m2) {
  const A total = n + other_n;
  if (other_n > A(0)) {
    const A delta = other_mean - mean, share = other_n / total;
    mean += delta * share;
    m2 += other_m2 + delta * delta * n * share;
    n = total;
  }
}

template <int V, class T>
__global__ void statistics_kernel(Accumulate<T>* partial_mean, Accumulate<T>* partial_m2, const T* x,
                                  const Geometry2d g) {
  using A = Accumulate<T>;
  __shared__ A shared_mean[kThreads * V], shared_m2[kThreads * V];
  __shared__ A shared_n[kThreads];
  const Place place = place_of<V>(g);
  A shift[V], mean[V], m2[V];
  A n = 0;
  for (int i = 0; i < V; ++i) shift[i] = mean[i] = m2[i] = A(0);
  if (place.first < place.end) {
    const Vec<T, V> unit = Vec<T, V>::load(x + place.first * g.C + place.channel);
    for (int i = 0; i < V; ++i) shift[i] = from<A>(unit[i]);
  }
#pragma unroll 4
  for (int64_t m = place.first; m < place.end; m += g.rows) {
    const Vec<T, V> unit = Vec<T, V>::load(x + m * g.C + place.channel);
    n += A(1);
    const A share = A(1) / n;
    for (int i = 0; i < V; ++i) {
      const A d = from<A>(unit[i]) - shift[i], delta = d - mean[i];
      mean[i] += delta * share;
      m2[i] += delta * (d - mean[i]);
    }
  }
  for (int i = 0; i < V; ++i) {
    shared_mean[i * kThreads + threadIdx.x] = mean[i] + shift[i];
    shared_m2[i * kThreads + threadIdx.x] = m2[i];
  }
  shared_n[threadIdx.x] = n;
  for (int half = g.rows / 2; half > 0; half /= 2) {
    __syncthreads();
    const int other = static_cast<int>(threadIdx.x) + half * g.columns;
    if (place.row < half && shared_n[other] > A(0)) {
      const A mine = shared_n[threadIdx.x];
      for (int i = 0; i < V; ++i) {
        A count = mine;
        join(count, shared_mean[i * kThreads + threadIdx.x], shared_m2[i * kThreads + threadIdx.x], shared_n[other],
             shared_mean[i * kThreads + other], shared_m2[i * kThreads + other]);
      }
      shared_n[threadIdx.x] = mine + shared_n[other];
    }
  }
  if (place.row == 0 && place.valid) {
    for (int i = 0; i < V; ++i) {
      partial_mean[(place.channel + i) * g.chunks + blockIdx.y] = shared_mean[i * kThreads + threadIdx.x];
      partial_m2[(place.channel + i) * g.chunks + blockIdx.y] = shared_m2[i * kThreads + threadIdx.x];
    }
  }
}

/// Rows, mean and squared distances of one channel.
template <class A>
struct Moments {
  A n, mean, m2;
};

/// `lanes` (a power of two, at most 32) neighbouring threads join the chunks of channel c; all of them get the result.
template <class A>
__device__ Moments<A> join_chunks(const A* partial_mean, const A* partial_m2, const Geometry2d& g, const int64_t c,
                                  const int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  A n = 0, mean = 0, m2 = 0;
  if (c < g.C) {
    for (int64_t chunk = lane; chunk < g.chunks; chunk += lanes) {
      const int64_t begin = chunk * g.per_chunk, left = g.M - begin;
      join(n, mean, m2, static_cast<A>(left < g.per_chunk ? left : g.per_chunk), partial_mean[c * g.chunks + chunk],
           partial_m2[c * g.chunks + chunk]);
    }
  }
  for (int distance = 1; distance < lanes; distance *= 2) {
    const A other_n = __shfl_xor_sync(kAllLanes, n, distance), other_mean = __shfl_xor_sync(kAllLanes, mean, distance);
    join(n, mean, m2, other_n, other_mean, __shfl_xor_sync(kAllLanes, m2, distance));
  }
  return {n, mean, m2};
}

template <class A>
__device__ void move_running(A* running_mean, A* running_var, const Moments<A>& batch, const int64_t c,
                             const A momentum) {
  const A n = batch.n, mean = batch.mean, m2 = batch.m2, var = m2 / n;
  if (running_mean != nullptr) running_mean[c] += momentum * (mean - running_mean[c]);
  if (running_var != nullptr) running_var[c] += momentum * ((n > A(1) ? m2 / (n - A(1)) : var) - running_var[c]);
}

template <class A>
__global__ void finish_statistics_kernel(A* save_mean, A* save_invstd, A* running_mean, A* running_var,
                                         const A* partial_mean, const A* partial_m2, const Geometry2d g,
                                         const int lanes, const A eps, const A momentum) {
  const int64_t c = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
  const Moments<A> batch = join_chunks(partial_mean, partial_m2, g, c, lanes);
  if (c < g.C && threadIdx.x % static_cast<unsigned>(lanes) == 0) {
    const A var = batch.m2 / batch.n;
    save_mean[c] = batch.mean;
    save_invstd[c] = A(1) / sqrt(var + eps);
    move_running(running_mean, running_var, batch, c, momentum);
  }
}

/// The same for a part of a batch: mean, m2 and, once, the rows.
template <class A>
__global__ void finish_part_kernel(A* part, const A* partial_mean, const A* partial_m2, const Geometry2d g,
                                   const int lanes) {
  const int64_t c = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
  const Moments<A> batch = join_chunks(partial_mean, partial_m2, g, c, lanes);
  if (c < g.C && threadIdx.x % static_cast<unsigned>(lanes) == 0) {
    part[c] = batch.mean;
    part[g.C + c] = batch.m2;
    if (c == 0) part[2 * g.C] = static_cast<A>(g.M);
  }
}

/// A thread per channel joins the parts of all ranks: n is small, and so is C.
template <class A>
__global__ void join_parts_kernel(A* mean, A* var, A* invstd, A* total, A* running_mean, A* running_var, const A* parts,
                                  const int64_t n, const int64_t C, const A eps, const A momentum) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= C) return;
  Moments<A> batch{A(0), A(0), A(0)};
  for (int64_t i = 0; i < n; ++i) {
    const A* part = parts + i * (2 * C + 1);
    join(batch.n, batch.mean, batch.m2, part[2 * C], part[c], part[C + c]);
  }
  mean[c] = batch.mean;
  var[c] = batch.m2 / batch.n;
  invstd[c] = A(1) / sqrt(batch.m2 / batch.n + eps);
  move_running(running_mean, running_var, batch, c, momentum);
  if (c == 0) total[0] = batch.n;
}

/// Channel constants of the affine step, none of them required but mean.
template <class A>
struct Channels {
  const A* mean;
  const A* invstd;  // or none: from var
  const A* var;
  const A* weight;
  const A* bias;
  A eps;
};

template <int V, class T>
__global__ void normalize_kernel(T* y, const T* x, const T* residual, const Channels<Accumulate<T>> channels,
                                 const Geometry2d g, const bool relu) {
  using A = Accumulate<T>;
  const Place place = place_of<V>(g);
  if (!place.valid) return;
  A mean[V], scale[V], bias[V];
  for (int i = 0; i < V; ++i) {
    const int64_t c = place.channel + i;
    mean[i] = channels.mean[c];
    scale[i] = channels.invstd != nullptr ? channels.invstd[c] : A(1) / sqrt(channels.var[c] + channels.eps);
    if (channels.weight != nullptr) scale[i] *= channels.weight[c];
    bias[i] = channels.bias != nullptr ? channels.bias[c] : A(0);
  }
#pragma unroll 2
  for (int64_t m = place.first; m < place.end; m += g.rows) {
    const int64_t at = m * g.C + place.channel;
    const Vec<T, V> unit = Vec<T, V>::load(x + at);
    Vec<T, V> extra, out;
    if (residual != nullptr) extra = Vec<T, V>::load(residual + at);
    for (int i = 0; i < V; ++i) {
      A value = (from<A>(unit[i]) - mean[i]) * scale[i] + bias[i];
      if (residual != nullptr) value += from<A>(extra[i]);
      if (relu && value < A(0)) value = A(0);
      out[i] = to<T>(value);
    }
    out.store(y + at);
  }
}

/// Sums of dy (masked where y <= 0) and dy xhat.
template <int V, class T>
__global__ void gradient_sums_kernel(Accumulate<T>* partial_dy, Accumulate<T>* partial_dyx, const T* dy, const T* x,
                                     const T* y, const Accumulate<T>* save_mean, const Accumulate<T>* save_invstd,
                                     const Geometry2d g) {
  using A = Accumulate<T>;
  __shared__ A shared_dy[kThreads * V], shared_dyx[kThreads * V];
  const Place place = place_of<V>(g);
  A mean[V], sum_dy[V], sum_dyx[V];
  for (int i = 0; i < V; ++i) {
    mean[i] = place.valid ? save_mean[place.channel + i] : A(0);
    sum_dy[i] = sum_dyx[i] = A(0);
  }
#pragma unroll 2
  for (int64_t m = place.first; m < place.end; m += g.rows) {
    const int64_t at = m * g.C + place.channel;
    const Vec<T, V> dy_unit = Vec<T, V>::load(dy + at), x_unit = Vec<T, V>::load(x + at);
    Vec<T, V> y_unit;
    if (y != nullptr) y_unit = Vec<T, V>::load(y + at);
    for (int i = 0; i < V; ++i) {
      A d = from<A>(dy_unit[i]);
      if (y != nullptr && !(from<A>(y_unit[i]) > A(0))) d = A(0);
      sum_dy[i] += d;
      sum_dyx[i] += d * (from<A>(x_unit[i]) - mean[i]);
    }
  }
  for (int i = 0; i < V; ++i) {
    shared_dy[i * kThreads + threadIdx.x] = sum_dy[i];
    shared_dyx[i * kThreads + threadIdx.x] = sum_dyx[i];
  }
  for (int half = g.rows / 2; half > 0; half /= 2) {
    __syncthreads();
    const int other = static_cast<int>(threadIdx.x) + half * g.columns;
    if (place.row < half) {
      for (int i = 0; i < V; ++i) {
        shared_dy[i * kThreads + threadIdx.x] += shared_dy[i * kThreads + other];
        shared_dyx[i * kThreads + threadIdx.x] += shared_dyx[i * kThreads + other];
      }
    }
  }
  if (place.row == 0 && place.valid) {
    for (int i = 0; i < V; ++i) {
      const int64_t c = place.channel + i;
      partial_dy[c * g.chunks + blockIdx.y] = shared_dy[i * kThreads + threadIdx.x];
      partial_dyx[c * g.chunks + blockIdx.y] = shared_dyx[i * kThreads + threadIdx.x] * save_invstd[c];
    }
  }
}

template <class A>
__global__ void finish_sums_kernel(A* sum_dy, A* sum_dyx, A* dweight, A* dbias, const A* partial_dy,
                                   const A* partial_dyx, const Geometry2d g, const int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t c = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
  A dy = 0, dyx = 0;
  if (c < g.C) {
    for (int64_t chunk = lane; chunk < g.chunks; chunk += lanes) {
      dy += partial_dy[c * g.chunks + chunk];
      dyx += partial_dyx[c * g.chunks + chunk];
    }
  }
  for (int distance = 1; distance < lanes; distance *= 2) {
    dy += __shfl_xor_sync(kAllLanes, dy, distance);
    dyx += __shfl_xor_sync(kAllLanes, dyx, distance);
  }
  if (c < g.C && lane == 0) {
    sum_dy[c] = dy;
    sum_dyx[c] = dyx;
    if (dbias != nullptr) dbias[c] = dy;
    if (dweight != nullptr) dweight[c] = dyx;
  }
}

/// dx = weight invstd (dy - mean(dy) - xhat mean(dy xhat)); the means are the sums times `share`.
template <int V, class T>
__global__ void gradient_kernel(T* dx, T* dresidual, const T* dy, const T* x, const T* y,
                                const Channels<Accumulate<T>> channels, const Accumulate<T>* sum_dy,
                                const Accumulate<T>* sum_dyx, const Accumulate<T> share, const Geometry2d g) {
  using A = Accumulate<T>;
  const Place place = place_of<V>(g);
  if (!place.valid) return;
  A mean[V], scale[V], slope[V], constant[V];
  for (int i = 0; i < V; ++i) {
    const int64_t c = place.channel + i;
    mean[i] = channels.mean[c];
    scale[i] = channels.invstd[c];
    slope[i] = channels.invstd[c] * sum_dyx[c] * share;
    constant[i] = sum_dy[c] * share;
    if (channels.weight != nullptr) scale[i] *= channels.weight[c];
  }
#pragma unroll 2
  for (int64_t m = place.first; m < place.end; m += g.rows) {
    const int64_t at = m * g.C + place.channel;
    Vec<T, V> dy_unit = Vec<T, V>::load(dy + at);
    Vec<T, V> x_unit = dy_unit, y_unit;
    if (dx != nullptr) x_unit = Vec<T, V>::load(x + at);
    if (y != nullptr) {
      y_unit = Vec<T, V>::load(y + at);
      for (int i = 0; i < V; ++i)
        if (!(from<A>(y_unit[i]) > A(0))) dy_unit[i] = to<T>(A(0));
    }
    if (dresidual != nullptr) dy_unit.store(dresidual + at);
    if (dx != nullptr) {
      Vec<T, V> out;
      for (int i = 0; i < V; ++i)
        out[i] = to<T>(scale[i] * (from<A>(dy_unit[i]) - constant[i] - (from<A>(x_unit[i]) - mean[i]) * slope[i]));
      out.store(dx + at);
    }
  }
}

/// Calls `body.operator()<V>()` with 16 bytes of channels, or with one where C or a pointer does not allow that.
template <class T, class Body>
void with_width(int64_t C, std::initializer_list<const View*> views, Body&& body) {
  constexpr int V = 16 / sizeof(T);
  bool wide = C % V == 0;
  for (const View* view : views) wide = wide && reinterpret_cast<uintptr_t>(view->data) % 16 == 0;
  if (wide)
    body.template operator()<V>();
  else
    body.template operator()<1>();
}

void check(const char* name, const View& x) {
  WEFT_CHECK(x.rank == 2 && x.is_contiguous(), name, ": expected contiguous [M, C], got ", x);
}

/// Threads that join the chunks of one channel.
int lanes_for(int64_t chunks) {
  int lanes = 1;
  while (lanes < kWarp && lanes * 2 <= chunks) lanes *= 2;
  return lanes;
}

/// `lanes` threads for each channel.
dim3 finish_grid(int64_t C, int lanes) { return dim3(static_cast<unsigned>(ceil_div(C * lanes, kThreads))); }

template <class A>
A* optional(const View& view) {
  return view ? view.as<A>() : nullptr;
}

template <class T>
void normalize(const Queue& queue, const char* name, const View& y, const View& x, const View& residual,
               const Channels<Accumulate<T>>& channels, bool relu) {
  const int64_t M = x.sizes[0], C = x.sizes[1];
  with_width<T>(C, {&y, &x, &residual}, [&]<int V>() {
    const Geometry2d g = geometry_of(M, C, V, 4);
    launch(queue, name, grid_of(g, V), dim3(kThreads), 0, &normalize_kernel<V, T>, y.as<T>(),
           static_cast<const T*>(x.data), static_cast<const T*>(residual.data), channels, g, relu);
  });
}

}  // namespace

void batch_norm_forward(const Queue& queue, const View& y, const View& save_mean, const View& save_invstd,
                        const View& running_mean, const View& running_var, const View& x, const View& weight,
                        const View& bias, const View& residual, BatchNormArguments arguments) {
  check("batch_norm_forward", x);
  const int64_t M = x.sizes[0], C = x.sizes[1];
  if (M == 0 || C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_forward", [&]<class T>() {
    using A = Accumulate<T>;
    with_width<T>(C, {&x}, [&]<int V>() {
      const Geometry2d g = geometry_of(M, C, V, 8);
      const Workspace partial(queue, static_cast<size_t>(2 * C * g.chunks) * sizeof(A), "batch_norm_forward");
      A* mean = partial.template as<A>();
      A* m2 = mean + C * g.chunks;
      launch(queue, "batch_norm_forward (statistics)", grid_of(g, V), dim3(kThreads), 0, &statistics_kernel<V, T>, mean,
             m2, static_cast<const T*>(x.data), g);
      const int lanes = lanes_for(g.chunks);
      launch(queue, "batch_norm_forward (finish)", finish_grid(C, lanes), dim3(kThreads), 0,
             &finish_statistics_kernel<A>, save_mean.as<A>(), save_invstd.as<A>(), optional<A>(running_mean),
             optional<A>(running_var), mean, m2, g, lanes, static_cast<A>(arguments.eps),
             static_cast<A>(arguments.momentum));
    });
    const Channels<A> channels{save_mean.as<A>(),   save_invstd.as<A>(), nullptr,
                               optional<A>(weight), optional<A>(bias),   static_cast<A>(arguments.eps)};
    normalize<T>(queue, "batch_norm_forward (normalize)", y, x, residual, channels, arguments.relu);
  });
}

void batch_norm_inference(const Queue& queue, const View& y, const View& x, const View& running_mean,
                          const View& running_var, const View& weight, const View& bias, const View& residual,
                          BatchNormArguments arguments) {
  check("batch_norm_inference", x);
  if (x.numel() == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_inference", [&]<class T>() {
    using A = Accumulate<T>;
    const Channels<A> channels{running_mean.as<A>(), nullptr,           running_var.as<A>(),
                               optional<A>(weight),  optional<A>(bias), static_cast<A>(arguments.eps)};
    normalize<T>(queue, "batch_norm_inference", y, x, residual, channels, arguments.relu);
  });
}

void batch_norm_backward(const Queue& queue, const View& dx, const View& dresidual, const View& dweight,
                         const View& dbias, const View& dy, const View& x, const View& y, const View& weight,
                         const View& save_mean, const View& save_invstd, BatchNormArguments arguments) {
  check("batch_norm_backward", x);
  WEFT_CHECK(!arguments.relu || y || x.numel() == 0, "batch_norm_backward: expected the forward's output y with relu");
  const int64_t M = x.sizes[0], C = x.sizes[1];
  if (M == 0 || C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const T* masked = arguments.relu ? static_cast<const T*>(y.data) : nullptr;
    const T* dy_data = static_cast<const T*>(dy.data);
    const T* x_data = static_cast<const T*>(x.data);
    const Workspace sums(queue, static_cast<size_t>(2 * C) * sizeof(A), "batch_norm_backward");
    A* sum_dy = sums.as<A>();
    A* sum_dyx = sum_dy + C;
    with_width<T>(C, {&dy, &x, &y}, [&]<int V>() {
      const Geometry2d g = geometry_of(M, C, V, 8);
      const Workspace partial(queue, static_cast<size_t>(2 * C * g.chunks) * sizeof(A), "batch_norm_backward");
      A* partial_dy = partial.template as<A>();
      A* partial_dyx = partial_dy + C * g.chunks;
      launch(queue, "batch_norm_backward (sums)", grid_of(g, V), dim3(kThreads), 0, &gradient_sums_kernel<V, T>,
             partial_dy, partial_dyx, dy_data, x_data, masked, static_cast<const A*>(save_mean.data),
             static_cast<const A*>(save_invstd.data), g);
      const int lanes = lanes_for(g.chunks);
      launch(queue, "batch_norm_backward (finish)", finish_grid(C, lanes), dim3(kThreads), 0, &finish_sums_kernel<A>,
             sum_dy, sum_dyx, optional<A>(dweight), optional<A>(dbias), partial_dy, partial_dyx, g, lanes);
    });
    if (!dx && !dresidual) return;
    const Channels<A> channels{save_mean.as<A>(), save_invstd.as<A>(), nullptr, optional<A>(weight), nullptr, A(0)};
    with_width<T>(C, {&dx, &dresidual, &dy, &x, &y}, [&]<int V>() {
      const Geometry2d g = geometry_of(M, C, V, 4);
      launch(queue, "batch_norm_backward (dx)", grid_of(g, V), dim3(kThreads), 0, &gradient_kernel<V, T>,
             optional<T>(dx), optional<T>(dresidual), dy_data, x_data, masked, channels, sum_dy, sum_dyx,
             A(1) / static_cast<A>(M), g);
    });
  });
}

void batch_norm_statistics(const Queue& queue, const View& part, const View& x) {
  check("batch_norm_statistics", x);
  const int64_t M = x.sizes[0], C = x.sizes[1];
  WEFT_CHECK(M > 0 && part.numel() == 2 * C + 1, "batch_norm_statistics: expected rows and a part of ", 2 * C + 1,
             " numbers, got ", x, " and ", part);
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_statistics", [&]<class T>() {
    using A = Accumulate<T>;
    with_width<T>(C, {&x}, [&]<int V>() {
      const Geometry2d g = geometry_of(M, C, V, 8);
      const Workspace partial(queue, static_cast<size_t>(2 * C * g.chunks) * sizeof(A), "batch_norm_statistics");
      A* mean = partial.template as<A>();
      A* m2 = mean + C * g.chunks;
      launch(queue, "batch_norm_statistics", grid_of(g, V), dim3(kThreads), 0, &statistics_kernel<V, T>, mean, m2,
             static_cast<const T*>(x.data), g);
      const int lanes = lanes_for(g.chunks);
      launch(queue, "batch_norm_statistics (finish)", finish_grid(C, lanes), dim3(kThreads), 0, &finish_part_kernel<A>,
             part.as<A>(), mean, m2, g, lanes);
    });
  });
}

void batch_norm_join(const Queue& queue, const View& mean, const View& var, const View& invstd, const View& total,
                     const View& running_mean, const View& running_var, const View& parts,
                     BatchNormArguments arguments) {
  const int64_t C = mean.numel();
  WEFT_CHECK(parts.rank == 2 && parts.is_contiguous() && parts.sizes[0] > 0 && parts.sizes[1] == 2 * C + 1,
             "batch_norm_join: expected contiguous [n, ", 2 * C + 1, "], got ", parts);
  if (C == 0) return;
  with_dtype<float, double>(parts.dtype, "batch_norm_join", [&]<class A>() {
    launch(queue, "batch_norm_join", finish_grid(C, 1), dim3(kThreads), 0, &join_parts_kernel<A>, mean.as<A>(),
           var.as<A>(), invstd.as<A>(), total.as<A>(), optional<A>(running_mean), optional<A>(running_var),
           static_cast<const A*>(parts.data), parts.sizes[0], C, static_cast<A>(arguments.eps),
           static_cast<A>(arguments.momentum));
  });
}

void batch_norm_backward_input(const Queue& queue, const View& dx, const View& dresidual, const View& mean_dy,
                               const View& mean_dyx, const View& dy, const View& x, const View& y, const View& weight,
                               const View& save_mean, const View& save_invstd, BatchNormArguments arguments) {
  check("batch_norm_backward_input", x);
  WEFT_CHECK(!arguments.relu || y || x.numel() == 0,
             "batch_norm_backward_input: expected the forward's output y with relu");
  const int64_t M = x.sizes[0], C = x.sizes[1];
  if (M == 0 || C == 0 || (!dx && !dresidual)) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_backward_input", [&]<class T>() {
    using A = Accumulate<T>;
    const Channels<A> channels{save_mean.as<A>(), save_invstd.as<A>(), nullptr, optional<A>(weight), nullptr, A(0)};
    with_width<T>(C, {&dx, &dresidual, &dy, &x, &y}, [&]<int V>() {
      const Geometry2d g = geometry_of(M, C, V, 4);
      launch(queue, "batch_norm_backward_input", grid_of(g, V), dim3(kThreads), 0, &gradient_kernel<V, T>,
             optional<T>(dx), optional<T>(dresidual), static_cast<const T*>(dy.data), static_cast<const T*>(x.data),
             arguments.relu ? static_cast<const T*>(y.data) : nullptr, channels, static_cast<const A*>(mean_dy.data),
             static_cast<const A*>(mean_dyx.data), A(1), g);
    });
  });
}

}  // namespace weft::kernels::WEFT_DEVICE
