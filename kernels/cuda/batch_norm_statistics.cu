// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"

#include "kernels/cuda/batch_norm_moments.cuh"

// Geometry: batch_norm.cuh. Each thread takes a Welford mean and squared deviation of x - (its first x); Chan's formula
// joins the threads of a column in shared memory (a tree) and, in the kernel that follows, the chunks. Shared: two
// accumulators per thread and channel, [256][V] each: 16 KiB for bf16, 8 KiB for f32. Bytes per element: size_of(x),
// four rows in flight per thread; 5 flops. 85% of the bandwidth for 10 MB and more.

namespace weft::kernels::WEFT_DEVICE {

using namespace channelwise;

namespace {

template <int V, class T>
__global__ void statistics_kernel(Accumulate<T>* partial_mean, Accumulate<T>* partial_m2, const T* x,
                                  const Geometry2d g) {
  using A = Accumulate<T>;
  __shared__ A shared_mean[kThreads * V], shared_m2[kThreads * V];
  __shared__ A shared_n[kThreads];
  const Position position = position_of<V>(g);
  A shift[V], mean[V], m2[V];
  A n = 0;
  for (int i = 0; i < V; ++i) shift[i] = mean[i] = m2[i] = A(0);
  if (position.first < position.end) {
    const Vec<T, V> unit = Vec<T, V>::load(x + position.first * g.C + position.channel);
    for (int i = 0; i < V; ++i) shift[i] = from<A>(unit[i]);
  }
#pragma unroll 4
  for (int64_t m = position.first; m < position.end; m += g.rows) {
    const Vec<T, V> unit = Vec<T, V>::load(x + m * g.C + position.channel);
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
    if (position.row < half && shared_n[other] > A(0)) {
      const A mine = shared_n[threadIdx.x];
      for (int i = 0; i < V; ++i) {
        A count = mine;
        join(count, shared_mean[i * kThreads + threadIdx.x], shared_m2[i * kThreads + threadIdx.x], shared_n[other],
             shared_mean[i * kThreads + other], shared_m2[i * kThreads + other]);
      }
      shared_n[threadIdx.x] = mine + shared_n[other];
    }
  }
  if (position.row == 0 && position.valid) {
    for (int i = 0; i < V; ++i) {
      partial_mean[(position.channel + i) * g.chunks + blockIdx.y] = shared_mean[i * kThreads + threadIdx.x];
      partial_m2[(position.channel + i) * g.chunks + blockIdx.y] = shared_m2[i * kThreads + threadIdx.x];
    }
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

bool is_wide(const View& x) {
  const int64_t v = 16 / static_cast<int64_t>(size_of(x.dtype));
  return x.sizes[1] % v == 0 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
}

/// Rows that a thread takes at least.
constexpr int64_t kRowsPerThread = 8;

Geometry2d statistics_geometry(const View& x) {
  return geometry_of(x.sizes[0], x.sizes[1], is_wide(x) ? 16 / static_cast<int>(size_of(x.dtype)) : 1, kRowsPerThread);
}

}  // namespace

namespace channelwise {

ChunkStatistics::ChunkStatistics(const Queue& queue, const char* name, const View& x)
    : geometry_(statistics_geometry(x)),
      partial_(queue, static_cast<size_t>(2 * geometry_.C * geometry_.chunks) * (x.dtype == DType::f64 ? 8 : 4), name) {
  with_dtype<float, bf16, f16, double>(x.dtype, name, [&]<class T>() {
    using A = Accumulate<T>;
    with_width<T>(x, kRowsPerThread, kBlocks, {&x}, [&]<int V>(const Geometry2d& g) {
      launch(queue, name, grid_of(g, V), dim3(kThreads), 0, &statistics_kernel<V, T>, partial_.as<A>(),
             partial_.as<A>() + g.C * g.chunks, static_cast<const T*>(x.data), g);
    });
  });
}

}  // namespace channelwise

void batch_norm_statistics(const Queue& queue, const View& part, const View& x) {
  check("batch_norm_statistics", x);
  const int64_t M = x.sizes[0], C = x.sizes[1];
  WEFT_CHECK(M > 0 && part.numel() == 2 * C + 1, "batch_norm_statistics: expected rows and a part of ", 2 * C + 1,
             " numbers, got ", x, " and ", part);
  if (C == 0) return;
  const ChunkStatistics chunks(queue, "batch_norm_statistics", x);
  with_dtype<float, double>(part.dtype, "batch_norm_statistics", [&]<class A>() {
    launch(queue, "batch_norm_statistics (finish)", finish_grid(C, chunks.lanes()), dim3(kThreads), 0,
           &finish_part_kernel<A>, part.as<A>(), chunks.mean<A>(), chunks.m2<A>(), chunks.geometry(), chunks.lanes());
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

}  // namespace weft::kernels::WEFT_DEVICE
