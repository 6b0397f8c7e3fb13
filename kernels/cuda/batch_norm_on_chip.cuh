// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/batch_norm_moments.cuh"

// Batch norm's forward in training, in one launch that reads x once: for sizes where a cluster of blocks holds all rows
// of a few channels in shared memory. Without clusters (before Hopper) one block must hold them.
//
//   grid      C / width clusters of `blocks` blocks; block k of a cluster has rows k per_block to (k + 1) per_block
//   block     512 threads = `columns` x rows; a thread owns V neighbouring channels (16 bytes) of every rows-th row
//   shared    moments of the warps, and then of the cluster's blocks | held   [rows of a thread][512] units of 16
//   bytes:
//             each thread writes and reads its own. All of it dynamic: a launch asks for the sum
//
// All rows of a thread are under way at once (cp.async), in turns of eight, which are added up as they come. Each block
// then reads the moments of all blocks of its cluster and joins them in the order of their ranks: the same bits in
// every run. Bytes per element of size e: 2e, with a residual 3e; four rows a turn on the way out; 12 flops. By the
// model of time 77% of a copy's bandwidth for 25 MB on an H100.

namespace weft::kernels::WEFT_DEVICE::channelwise {

/// Of training: where the batch's statistics come from, and where they go (total and the running ones: or nullptr).
template <class A>
struct Training {
  Parts<A> parts;  // count 0: inference, or the statistics of x
  A *save_mean, *save_invstd, *total, *running_mean, *running_var;
  A momentum;

  __device__ __forceinline__ void keep(const Moments<A>& batch, const A invstd, const int64_t c) const {
    save_mean[c] = batch.mean;
    save_invstd[c] = invstd;
    move_running(running_mean, running_var, batch, c, momentum);
    if (c == 0 && total != nullptr) total[0] = batch.n;
  }
};

/// The forward's arguments. residual: or nullptr.
template <class T>
struct Norm {
  T* y;
  const T *x, *residual;
  Channels<Accumulate<T>> channels;
  Training<Accumulate<T>> training;
  bool relu;
};

/// The rows of x in `unit`, at `at` and every `step` from there: normalised, plus the residual, ReLU.
template <bool kResidual, bool kRelu, int V, int N, class T>
__device__ __forceinline__ void normalize_rows(const Norm<T>& norm, const Vec<T, V> (&unit)[N], const int64_t at,
                                               const int64_t step, const Accumulate<T> (&mean)[V],
                                               const Accumulate<T> (&scale)[V], const Accumulate<T> (&bias)[V]) {
  using A = Accumulate<T>;
  [[maybe_unused]] Vec<T, V> extra[N];
  if constexpr (kResidual) {
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) extra[r] = Vec<T, V>::load(norm.residual + at + r * step);
  }
  WEFT_UNROLL
  for (int r = 0; r < N; ++r) {
    Vec<T, V> out;
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) {
      A value = normalized(from<A>(unit[r][i]), mean[i], scale[i], bias[i]);
      if constexpr (kResidual) value += from<A>(extra[r][i]);
      if (kRelu && value < A(0)) value = A(0);
      out[i] = to<T>(value);
    }
    out.store(norm.y + at + r * step);
  }
}

/// Calls body.operator()<kResidual, kRelu>(): asking for each element takes as long as the norm itself.
template <class T, class Body>
__device__ __forceinline__ void with_flags(const Norm<T>& norm, Body&& body) {
  if (norm.residual != nullptr)
    norm.relu ? body.template operator()<true, true>() : body.template operator()<true, false>();
  else
    norm.relu ? body.template operator()<false, true>() : body.template operator()<false, false>();
}

inline constexpr const char* kOnChip = "batch_norm_forward (on chip)";
inline constexpr int kTurn = 8, kTurns = 4;                  // rows of a turn, and turns of a thread at most
inline constexpr int kUnit = 16, kPlane = kThreads * kUnit;  // bytes of shared memory for a row of each thread
inline constexpr int kSmall = 8;                             // rows of a thread for which any number of blocks will do

/// Beside the rows.
template <class A>
struct JoinMemory {
  Moments<A> of_warps[kWarps][kTile], own[kTile];
  A mean[kTile], invstd[kTile];
};
inline constexpr int kJoinBytes = static_cast<int>(sizeof(JoinMemory<float>));
static_assert(kJoinBytes % kUnit == 0);

struct OnChip {
  int64_t M, C, per_block;  ///< rows of a block
  int columns;              ///< units of 16 bytes that a block takes of a row; 0: x does not fit
  int blocks;               ///< of a cluster
  int rows;                 ///< of a thread, at most

  size_t bytes() const { return kJoinBytes + static_cast<size_t>(rows) * kPlane; }
};

/// Rows that a thread of a block can hold, where a block may have `shared` bytes of shared memory.
inline int most_rows(int shared) { return std::min((shared - kJoinBytes) / kPlane, kTurn * kTurns); }

/// How x [M, C], of `unit` channels in 16 bytes, is held by clusters of at most `most_blocks` blocks whose threads hold
/// at most `most` rows: by the smallest cluster with which few multiprocessors are idle, in the longest pieces of rows.
/// Of half a sector (16 bytes) only where nothing else fits, since two clusters then read each sector.
inline OnChip plan_on_chip(int64_t M, int64_t C, int unit, int most_blocks, int most) {
  for (const int least : {2, 1})
    for (int blocks = 1; blocks <= most_blocks; blocks *= 2)
      for (int columns = 8; columns >= least; columns /= 2) {
        if (columns > 1 && int64_t{columns} / 2 * unit >= C) continue;
        const int64_t per_block = ceil_div(M, blocks), rows = ceil_div(per_block, kThreads / columns);
        const bool fills = blocks * ceil_div(C, int64_t{columns} * unit) >= kBlocks;
        if (rows <= most && (rows <= kSmall || fills))
          return {M, C, per_block, columns, blocks, static_cast<int>(rows)};
      }
  return {};
}

/// For blocks that are a cluster each.
struct OneBlock {
  static __device__ __forceinline__ void sync() { __syncthreads(); }
  static __device__ __forceinline__ void arrive() {}
  static __device__ __forceinline__ void wait() {}
  template <class A>
  static __device__ __forceinline__ A* of_block(A* shared, int) {
    return shared;
  }
};

template <int V, class T, class Cluster>
__global__ void __launch_bounds__(kThreads, 1) on_chip_kernel(const Norm<T> norm, const OnChip plan) {
  using A = Accumulate<T>;
  static_assert(sizeof(A) == 4);
  WEFT_DYNAMIC_SHARED(unsigned char, memory);
  JoinMemory<A>& shared = *reinterpret_cast<JoinMemory<A>*>(memory);
  T* const held = reinterpret_cast<T*>(memory + kJoinBytes);
  const int thread = static_cast<int>(threadIdx.x), width = plan.columns * V;
  const int rank = static_cast<int>(blockIdx.x) % plan.blocks, column = thread % plan.columns * V;
  const int64_t group = blockIdx.x / plan.blocks * int64_t{width};  // its first channel
  const int64_t first = rank * plan.per_block + thread / plan.columns;
  const int64_t end = min(plan.M, (rank + 1) * plan.per_block), between = kThreads / plan.columns;
  const bool valid = group + column < plan.C;
  const int count = valid && first < end ? static_cast<int>((end - 1 - first) / between) + 1 : 0;
  const int64_t at = first * plan.C + group + column, step = between * plan.C;
  const auto slot = [&](int row) { return held + (row * kThreads + thread) * V; };

  const T* next = norm.x + at;
  WEFT_UNROLL_BY(1)
  for (int row = 0; row < kTurn * kTurns; row += kTurn) {
    WEFT_UNROLL
    for (int r = row; r < row + kTurn; ++r, next += step)
      if (r < count) ptx::cp_async<kUnit>(slot(r), next);
    ptx::cp_async_commit();
  }
  ThreadMoments<V, A> moments;
  int done = 0;
  const auto add = [&]<int N>() {
    Vec<T, V> units[N];
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) units[r] = Vec<T, V>::load(slot(done + r));
    moments.add(units);
    done += N;
  };
  WEFT_UNROLL_BY(1)
  for (; done + kTurn <= count;) {
    ptx::cp_async_wait_group<kTurns - 1>();
    add.template operator()<kTurn>();
    ptx::cp_async_commit();  // of nothing, so that the next wait is for the next turn
  }
  ptx::cp_async_wait_all();
  WEFT_UNROLL_BY(1)
  for (; done < count;) add.template operator()<1>();

  const Moments<A> block = moments.of_block(shared.of_warps, plan.columns);
  if (thread < width) shared.own[thread] = block;
  Cluster::sync();
  Moments<A>* const of_blocks = &shared.of_warps[0][0];
  for (int i = thread; i < plan.blocks * width; i += kThreads)
    of_blocks[i] = Cluster::of_block(shared.own, i / width)[i % width];
  Cluster::arrive();
  __syncthreads();
  const int64_t c = group + thread;
  if (thread < width && c < plan.C) {
    const auto batch = join_all<A>(plan.blocks, [&](int k) { return of_blocks[k * width + thread]; });
    const A invstd = A(1) / sqrt(batch.m2 / batch.n + norm.channels.eps);
    shared.mean[thread] = batch.mean;
    shared.invstd[thread] = invstd;
    if (rank == 0) norm.training.keep(batch, invstd, c);
  }
  __syncthreads();
  if (valid) {
    A mean[V], scale[V], bias[V];
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) {
      const int64_t channel = group + column + i;
      mean[i] = shared.mean[column + i];
      scale[i] = shared.invstd[column + i];
      if (norm.channels.weight != nullptr) scale[i] *= norm.channels.weight[channel];
      bias[i] = norm.channels.bias != nullptr ? norm.channels.bias[channel] : A(0);
    }
    with_flags(norm, [&]<bool kResidual, bool kRelu>() {
      int row = 0;
      int64_t place = at;
      const auto store = [&]<int N>() {
        Vec<T, V> units[N];
        WEFT_UNROLL
        for (int r = 0; r < N; ++r) units[r] = Vec<T, V>::load(slot(row + r));
        normalize_rows<kResidual, kRelu>(norm, units, place, step, mean, scale, bias);
        row += N;
        place += N * step;
      };
      WEFT_UNROLL_BY(1)
      for (; row + 4 <= count;) store.template operator()<4>();
      WEFT_UNROLL_BY(1)
      for (; row < count;) store.template operator()<1>();
    });
  }
  Cluster::wait();  // a block stays until the others have read its moments
}

template <class T, class Cluster>
constexpr auto on_chip = &on_chip_kernel<kVecSize<T>, T, Cluster>;

inline dim3 grid_of(const OnChip& plan, int unit) {
  return dim3(static_cast<unsigned>(ceil_div(plan.C, int64_t{plan.columns} * unit) * plan.blocks));
}

// batch_norm_on_chip_sm90.cu:

/// The largest cluster of blocks with `rows` rows of each thread that the device takes: 16, or 8, which every Hopper
/// takes.
template <class T>
int most_blocks_of_cluster(const Queue& queue, int rows);
template <class T>
void norm_on_clusters(const Queue& queue, const Norm<T>& norm, const OnChip& plan);

}  // namespace weft::kernels::WEFT_DEVICE::channelwise
