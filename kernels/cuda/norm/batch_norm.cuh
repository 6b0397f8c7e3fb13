// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "kernels/cuda/capability.cuh"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/view.h"

// Shared by the kernels of batch norm. x is [M, C]; all large kernels have one geometry:
//   block: 512 threads = `columns` x `rows`; a thread owns V neighbouring channels (16 bytes; one if C or a pointer is
//          not aligned), so channel constants stay in registers.
//   grid:  x = tiles of columns * V channels, at most 64; y = chunks of rows: chunk k owns every chunks-th group of
//          `rows` rows, from group k.
// So all blocks sweep over x together, and L2 holds the last rows read; the next pass sweeps back.
//
// An op is two launches. The first writes a few numbers per channel and chunk. Every block of the second combines these
// for its own channels, at most 48 KiB from L2; a third launch between the two would cost more. Hence few and large
// blocks: one per SM of an A100 or H100. Chunks do not depend on the GPU and are combined in a fixed order: no atomics,
// bit-identical results in every run.

namespace weft::kernels::cuda::channelwise {

inline constexpr int kThreads = 512, kWarp = 32, kWarps = kThreads / kWarp, kTile = 64;
inline constexpr int64_t kBlocks = 96;  // blocks of a first pass, on any GPU
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct Geometry2d {
  int64_t M, C;
  int columns, rows;  // columns * rows = 512
  int64_t chunks;
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline Geometry2d geometry_of(int64_t M, int64_t C, int v, int64_t rows_per_thread, int64_t blocks) {
  Geometry2d g{M, C, 1, kThreads, 1};
  while (g.columns < kWarp && g.columns * v < std::min<int64_t>(C, kTile)) g.columns *= 2;
  g.rows = kThreads / g.columns;
  const int64_t tiles = ceil_div(C, static_cast<int64_t>(g.columns) * v);
  g.chunks = std::clamp<int64_t>(blocks / tiles, 1, std::max<int64_t>(ceil_div(M, g.rows * rows_per_thread), 1));
  return g;
}

inline dim3 grid_of(const Geometry2d& g, int v) {
  return dim3(static_cast<unsigned>(ceil_div(g.C, static_cast<int64_t>(g.columns) * v)),
              static_cast<unsigned>(g.chunks));
}

enum class Sweep { forward, back };

/// A thread's channels and rows.
struct Position {
  int column;        // index in the tile of the thread's channels
  int64_t channel;   // the thread's first channel
  int64_t at, step;  // elements of x: offset of the first row, and distance to the next
  int64_t count;     // rows
  bool valid;        // channel < C
};

template <int V>
__device__ Position position_of(const Geometry2d& g, const Sweep sweep) {
  Position position;
  position.column = static_cast<int>(threadIdx.x) % g.columns * V;
  position.channel = static_cast<int64_t>(blockIdx.x) * g.columns * V + position.column;
  position.valid = position.channel < g.C;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * g.rows + static_cast<int>(threadIdx.x) / g.columns;
  const int64_t stride = g.chunks * g.rows;
  position.count = position.valid && first < g.M ? (g.M - 1 - first) / stride + 1 : 0;
  position.at = (sweep == Sweep::back ? g.M - 1 - first : first) * g.C + position.channel;
  position.step = (sweep == Sweep::back ? -stride : stride) * g.C;
  return position;
}

/// Calls body.operator()<N>(at) for the rows at `at`, at + position.step, …, N at a time: kFlight, and at the end 1. A
/// body that loads all its rows before its first store has N loads in flight.
template <int kFlight, class Body>
__device__ __forceinline__ void each_rows(const Position& position, Body&& body) {
  int64_t at = position.at, left = position.count;
  WEFT_UNROLL_BY(1)
  for (; left >= kFlight; left -= kFlight, at += kFlight * position.step) body.template operator()<kFlight>(at);
  WEFT_UNROLL_BY(1)
  for (; left > 0; --left, at += position.step) body.template operator()<1>(at);
}

/// Chunks that a thread loads at once: in f32 all chunks of a first pass; f64 has too few registers for that.
template <class A>
inline constexpr int kBatch = static_cast<int>(kBlocks* kTile / kThreads * 4 / sizeof(A));

/// Divides the chunks' numbers of a tile's channels among a block's threads: a thread has one channel and every
/// lanes-th chunk.
struct ChunkShare {
  int lanes, lane;
  int column;  // index in the tile of the channel; thread t < width has the t-th
  int64_t c;
  bool valid;  // c < C

  __device__ ChunkShare(int64_t C, int width)
      : lanes(kThreads / width),
        lane(static_cast<int>(threadIdx.x) / width),
        column(static_cast<int>(threadIdx.x) % width),
        c(static_cast<int64_t>(blockIdx.x) * width + column),
        valid(c < C) {}
};

/// Channel constants of the affine step. Weight and bias may be nullptr; only the statistics that the kernel uses are
/// set.
template <class A>
struct Channels {
  const A* mean;
  const A* invstd;
  const A* var;
  const A* weight;
  const A* bias;
  A eps;
};

/// The affine step, defined once so that backward computes the same bits as forward: one rounding each for the
/// difference and the multiply-add.
template <class A>
__device__ A normalized(A x, A mean, A scale, A bias) {
  return fma(x - mean, scale, bias);
}

/// Blocks for a second pass: one wave, so that no partial last wave leaves the GPU half idle.
inline int64_t resident_blocks(const Queue& queue) { return multiprocessors(queue); }

/// Calls `body.operator()<V>(geometry)` with 16 bytes of channels, or with one where C or a pointer does not allow
/// that.
template <class T, class Body>
void with_width(const View& x, int64_t rows_per_thread, int64_t blocks, std::initializer_list<const View*> views,
                Body&& body) {
  constexpr int V = 16 / sizeof(T);
  const int64_t M = x.sizes[0], C = x.sizes[1];
  bool wide = C % V == 0;
  for (const View* view : views) wide = wide && reinterpret_cast<uintptr_t>(view->data) % 16 == 0;
  if (wide)
    body.template operator()<V>(geometry_of(M, C, V, rows_per_thread, blocks));
  else
    body.template operator()<1>(geometry_of(M, C, 1, rows_per_thread, blocks));
}

inline void check(const char* name, const View& x) {
  WEFT_CHECK(x.rank == 2 && x.is_contiguous(), name, ": expected contiguous [M, C], got ", x);
}

template <class A>
A* optional(const View& view) {
  return view ? view.as<A>() : nullptr;
}

}  // namespace weft::kernels::cuda::channelwise
