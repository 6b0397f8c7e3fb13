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
//   block: 256 threads = `columns` x `rows`; a thread owns V neighbouring channels (16 bytes; V = 1 where C or a
//   pointer
//          does not allow it) and every rows-th row of its block's chunk, so channel constants stay in registers
//   grid: x = tiles of columns * V channels, y = chunks of rows
// Chunks do not depend on the GPU and are joined in their order: no atomics, the same bits in every run.

namespace weft::kernels::WEFT_DEVICE::channelwise {

inline constexpr int kThreads = 256, kWarp = 32;
inline constexpr int64_t kBlocks = 512;  // chunks that are joined are made for about this many blocks, whatever the GPU
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct Geometry2d {
  int64_t M, C;
  int columns, rows;  // columns * rows = 256
  int64_t per_chunk;  // rows of x for one block
  int64_t chunks;
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline Geometry2d geometry_of(int64_t M, int64_t C, int v, int64_t rows_per_thread, int64_t blocks = kBlocks) {
  Geometry2d g{M, C, 1, kThreads, M, 1};
  while (g.columns < kWarp && g.columns * v < C) g.columns *= 2;
  g.rows = kThreads / g.columns;
  const int64_t tiles = ceil_div(C, static_cast<int64_t>(g.columns) * v);
  const int64_t most = ceil_div(M, g.rows * rows_per_thread);
  const int64_t chunks = std::clamp<int64_t>(blocks / tiles, 1, std::max<int64_t>(most, 1));
  g.per_chunk = ceil_div(ceil_div(M, chunks), g.rows) * g.rows;
  g.chunks = ceil_div(M, g.per_chunk);
  return g;
}

inline dim3 grid_of(const Geometry2d& g, int v) {
  return dim3(static_cast<unsigned>(ceil_div(g.C, static_cast<int64_t>(g.columns) * v)),
              static_cast<unsigned>(g.chunks));
}

/// A thread's channels and rows.
struct Position {
  int64_t channel;     // its first
  int64_t first, end;  // rows: first, first + rows, …
  int row;
  bool valid;
};

template <int V>
__device__ Position position_of(const Geometry2d& g) {
  Position position;
  const int column = static_cast<int>(threadIdx.x) % g.columns;
  position.row = static_cast<int>(threadIdx.x) / g.columns;
  position.channel = (static_cast<int64_t>(blockIdx.x) * g.columns + column) * V;
  position.valid = position.channel < g.C;
  const int64_t begin = blockIdx.y * g.per_chunk;
  position.first = begin + position.row;
  position.end = begin + g.per_chunk < g.M ? begin + g.per_chunk : g.M;
  if (!position.valid) position.end = position.first;
  return position;
}

/// Calls body.operator()<N>(m) for rows m, m + g.rows, …, N of them at a time: kFlight, and at the end 1. A body that loads
/// all of its rows before it stores one has that many loads under way.
template <int kFlight, class Body>
__device__ __forceinline__ void each_rows(const Position& position, const Geometry2d& g, Body&& body) {
  int64_t m = position.first;
  for (; m + (kFlight - 1) * g.rows < position.end; m += kFlight * g.rows) body.template operator()<kFlight>(m);
  for (; m < position.end; m += g.rows) body.template operator()<1>(m);
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

/// The affine step, written once so that backward finds the same bits as forward: one rounding each for the difference
/// and the multiply-add.
template <class A>
__device__ A normalized(A x, A mean, A scale, A bias) {
  return fma(x - mean, scale, bias);
}

/// Blocks for a kernel that joins nothing: as many as run at a time, kBlocksPerMultiprocessor each, so that no last turn
/// leaves the GPU half empty.
inline constexpr int kBlocksPerMultiprocessor = 3;
inline int64_t resident_blocks(const Queue& queue) { return kBlocksPerMultiprocessor * multiprocessors(queue); }

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

/// Threads that join the chunks of one channel, a power of two.
inline int lanes_for(int64_t chunks) {
  int lanes = 1;
  while (lanes < kWarp && lanes * 2 <= chunks) lanes *= 2;
  return lanes;
}

/// `lanes` threads for each channel.
inline dim3 finish_grid(int64_t C, int lanes) { return dim3(static_cast<unsigned>(ceil_div(C * lanes, kThreads))); }

template <class A>
A* optional(const View& view) {
  return view ? view.as<A>() : nullptr;
}

}  // namespace weft::kernels::WEFT_DEVICE::channelwise
