// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "kernels/cuda/gemm/gemm_epilogue.cuh"
#include "kernels/cuda/norm/moments.cuh"
#include "kernels/runtime/allocator.h"

// Batch statistics from a GEMM's epilogue, while a tile is still in registers: a convolution in training computes its
// batch norm's mean and variance without a pass over y. Each tile (chunk of rows) yields its columns' means and M2, the
// sums of squared distances from the mean. Two passes over registers take the values as y stores them. A second
// kernel combines the chunks in an order that depends on sizes alone.
//
//   moments   chunk 0: mean [channels], m2 [channels] | chunk 1: … |     8 bytes for 64 or 128 elements of y

namespace weft::kernels::cuda {

/// Computes a warp's statistics of each column from kRows x kColumns values per lane; lanes that differ in the bits
/// from kDistance up hold the same columns. rows: rows of the warp inside y. value(r, c): this lane's value; inside(r):
/// whether its row is inside y.
template <int kDistance, int kRows, int kColumns, class Sum, class Value, class Inside>
__device__ __forceinline__ void warp_moments(Sum (&mean)[kColumns], Sum (&m2)[kColumns], int rows, Value&& value,
                                             Inside&& inside) {
  WEFT_UNROLL
  for (int c = 0; c < kColumns; ++c) {
    Sum sum = 0, squares = 0;
    WEFT_UNROLL
    for (int r = 0; r < kRows; ++r) sum += inside(r) ? value(r, c) : Sum(0);
    WEFT_UNROLL
    for (int distance = kDistance; distance < 32; distance *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    mean[c] = rows > 0 ? sum / static_cast<Sum>(rows) : Sum(0);
    WEFT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Sum delta = inside(r) ? value(r, c) - mean[c] : Sum(0);
      squares += delta * delta;
    }
    WEFT_UNROLL
    for (int distance = kDistance; distance < 32; distance *= 2)
      squares += __shfl_xor_sync(0xffffffffu, squares, distance);
    m2[c] = squares;
  }
}

/// Combines the statistics of a block's warps, [kWarps][mean, m2][kN] in shared memory, each over kWarpRows rows, and
/// writes `columns` columns. rows: rows of the tile inside y.
template <int kWarps, int kWarpRows, int kN, int kThreads, class Sum>
__device__ __forceinline__ void store_tile_moments(Sum* to, int channels, const Sum* shared, int rows, int columns) {
  for (int c = static_cast<int>(threadIdx.x); c < min(kN, columns); c += kThreads) {
    Sum n = 0, mean = 0, m2 = 0;
    WEFT_UNROLL
    for (int warp = 0; warp < kWarps; ++warp) {
      const int left = rows - warp * kWarpRows;
      channelwise::join(n, mean, m2,
                        static_cast<Sum>(left < 0           ? 0
                                         : left < kWarpRows ? left
                                                            : kWarpRows),
                        shared[2 * warp * kN + c], shared[(2 * warp + 1) * kN + c]);
    }
    to[c] = mean;
    to[channels + c] = m2;
  }
}

/// The batch statistics of one convolution's result [rows, channels]: the caller requests them, and a launch that
/// supports them computes them.
class TileMoments {
 public:
  TileMoments(const Queue& queue, int64_t rows, int64_t channels) : queue_(queue), rows_(rows), channels_(channels) {}

  /// Makes the launch with this epilogue write statistics of chunks of `per_chunk` rows.
  template <class T>
  void take(Epilogue<T>& epilogue, int64_t per_chunk) {
    per_chunk_ = per_chunk;
    memory_.emplace(queue_, static_cast<size_t>(2 * chunks() * channels_) * sizeof(Accumulate<T>), "conv2d_statistics");
    epilogue.moments = memory_->template as<Accumulate<T>>();
    epilogue.channels = static_cast<int>(channels_);
  }
  bool taken() const { return memory_.has_value(); }
  /// part = the statistics of all rows, in the format of batch_norm_statistics.
  void join_into(const View& part) const;

 private:
  int64_t chunks() const { return (rows_ + per_chunk_ - 1) / per_chunk_; }

  const Queue& queue_;
  int64_t rows_, channels_, per_chunk_ = 0;
  std::optional<Workspace> memory_;
};

}  // namespace weft::kernels::cuda
