// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"

#include "kernels/cuda/batch_norm_moments.cuh"

// Geometry: batch_norm.cuh. A thread takes 8 rows at a time (ThreadMoments); the block's warps and, in the kernel that
// follows, its chunks are joined all at once. Shared: 12 bytes for each warp and channel of a tile. Bytes per element:
// size_of(x), eight rows in flight per thread; 4 flops. 85% of the bandwidth for 10 MB and more.

namespace weft::kernels::WEFT_DEVICE {

using namespace channelwise;

namespace {

constexpr int kFlight = 8;
constexpr int64_t kRowsPerThread = 4;  // at least

template <int V, class T>
__global__ void __launch_bounds__(kThreads, 1) statistics_kernel(Accumulate<T>* parts, const T* x, const Geometry2d g) {
  using A = Accumulate<T>;
  __shared__ Moments<A> of_warps[kWarps][kTile];
  const Position position = position_of<V>(g, Sweep::forward);
  ThreadMoments<V, A> moments;
  each_rows<kFlight>(position, [&]<int N>(const int64_t at) {
    Vec<T, V> units[N];
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) units[r] = Vec<T, V>::load(x + at + r * position.step);
    moments.add(units);
  });
  const Moments<A> all = moments.of_block(of_warps, g.columns);
  const int thread = static_cast<int>(threadIdx.x), width = g.columns * V;
  const int64_t c = static_cast<int64_t>(blockIdx.x) * width + thread;
  if (thread >= width || c >= g.C) return;
  A* const part = parts + blockIdx.y * (2 * g.C + 1);
  part[c] = all.mean;
  part[g.C + c] = all.m2;
  if (c == 0) part[2 * g.C] = all.n;
}

/// A block for kTile channels.
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

}  // namespace weft::kernels::WEFT_DEVICE
