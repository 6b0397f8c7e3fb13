// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/batch_norm.h"

#include "kernels/cuda/norm/batch_norm_moments.cuh"

// Geometry: batch_norm.cuh. A thread processes 8 rows at a time: it sums their distances from the first row, and the
// squares; the subtraction in M2 cancels at most three bits, since the first row is one of the eight. Chan's formula
// combines the result with the thread's statistics, and lanes with each other. Then the block's warps and, in the next
// kernel, its chunks are combined at once. Shared: 12 bytes per warp and channel of a tile. Bytes per element:
// size_of(x), eight rows in flight per thread; 4 flops. 85% of the bandwidth for 10 MB and more.

namespace weft::kernels::cuda {

using namespace channelwise;

namespace {

constexpr int kFlight = 8;
constexpr int64_t kRowsPerThread = 4;  // minimum

template <int V, class T>
__global__ void __launch_bounds__(kThreads, 1) statistics_kernel(Accumulate<T>* parts, const T* x, const Geometry2d g) {
  using A = Accumulate<T>;
  __shared__ A shared_n[kWarps][kTile], shared_mean[kWarps][kTile], shared_m2[kWarps][kTile];
  const Position position = position_of<V>(g, Sweep::forward);
  A n = 0, mean[V], m2[V];
  WEFT_UNROLL
  for (int i = 0; i < V; ++i) mean[i] = m2[i] = A(0);
  const auto join_with = [&](A other_n, const A* other_mean, const A* other_m2) {
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) {
      A count = n;
      join(count, mean[i], m2[i], other_n, other_mean[i], other_m2[i]);
    }
    n += other_n;
  };
  A other_mean[V], other_m2[V];
  each_rows<kFlight>(position, [&]<int N>(const int64_t at) {
    Vec<T, V> units[N];
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) units[r] = Vec<T, V>::load(x + at + r * position.step);
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) {
      const A first = from<A>(units[0][i]), share = A(1) / A(N);
      A sum = 0, squares = 0;
      WEFT_UNROLL
      for (int r = 1; r < N; ++r) {
        const A distance = from<A>(units[r][i]) - first;
        sum += distance;
        squares += distance * distance;
      }
      other_mean[i] = first + sum * share;
      // At least an Nth of the squares remains; infinity stays.
      other_m2[i] = squares < A(INFINITY) ? squares - sum * share * sum : squares;
    }
    join_with(A(N), other_mean, other_m2);
  });
  for (int distance = g.columns; distance < kWarp; distance *= 2) {  // over lanes of the same channels
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) {
      other_mean[i] = __shfl_xor_sync(kAllLanes, mean[i], distance);
      other_m2[i] = __shfl_xor_sync(kAllLanes, m2[i], distance);
    }
    join_with(__shfl_xor_sync(kAllLanes, n, distance), other_mean, other_m2);
  }
  const int thread = static_cast<int>(threadIdx.x), width = g.columns * V;
  if (thread % kWarp < g.columns) {
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) {
      shared_n[thread / kWarp][position.column + i] = n;
      shared_mean[thread / kWarp][position.column + i] = mean[i];
      shared_m2[thread / kWarp][position.column + i] = m2[i];
    }
  }
  __syncthreads();
  const int64_t c = static_cast<int64_t>(blockIdx.x) * width + thread;
  if (thread >= width || c >= g.C) return;
  const Moments<A> all = join_all<A>(kWarps, [&](int warp) {
    return Moments<A>{shared_n[warp][thread], shared_mean[warp][thread], shared_m2[warp][thread]};
  });
  A* const part = parts + blockIdx.y * (2 * g.C + 1);
  part[c] = all.mean;
  part[g.C + c] = all.m2;
  if (c == 0) part[2 * g.C] = all.n;
}

/// One block per kTile channels.
template <class A>
__global__ void __launch_bounds__(kThreads, 1) join_parts_kernel(A* part, const Parts<A> parts, const int64_t C) {
  const Moments<A> all = join_parts(parts, C, kTile);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  if (threadIdx.x >= kTile || c >= C) return;
  part[c] = all.mean;
  part[C + c] = all.m2;
  if (c == 0) part[2 * C] = all.n;
}

Geometry2d statistics_geometry(const View& x) {
  Geometry2d geometry{};
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_statistics", [&]<class T>() {
    with_width<T>(x, kRowsPerThread, kBlocks, {&x}, [&]<int V>(const Geometry2d& g) { geometry = g; });
  });
  return geometry;
}

}  // namespace

namespace channelwise {

ChunkStatistics::ChunkStatistics(const Queue& queue, const char* name, const View& x)
    : chunks_(statistics_geometry(x).chunks),
      parts_(queue, static_cast<size_t>((2 * x.sizes[1] + 1) * chunks_) * (x.dtype == DType::f64 ? 8 : 4), name) {
  with_dtype<float, bf16, f16, double>(x.dtype, name, [&]<class T>() {
    with_width<T>(x, kRowsPerThread, kBlocks, {&x}, [&]<int V>(const Geometry2d& g) {
      launch(queue, name, grid_of(g, V), dim3(kThreads), 0, &statistics_kernel<V, T>, parts_.as<Accumulate<T>>(),
             static_cast<const T*>(x.data), g);
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
    launch(queue, "batch_norm_statistics (join)", dim3(static_cast<unsigned>(ceil_div(C, kTile))), dim3(kThreads), 0,
           &join_parts_kernel<A>, part.as<A>(), chunks.parts<A>(), C);
  });
}

}  // namespace weft::kernels::cuda
