// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "kernels/allocator.h"
#include "kernels/cuda/gemm_epilogue.cuh"
#include "kernels/cuda/moments.cuh"

// The statistics of a product's columns while its tiles are still in registers: a convolution in training finds its
// batch norm's mean and variance without a pass over y. Each tile (chunk of rows) gives its columns' means and sums of
// squared distances from them, in two passes over registers, of the values as y stores them. A second kernel joins the
// chunks in an order that depends on sizes alone.
//
//   moments   chunk 0: mean [channels], m2 [channels] | chunk 1: … |     8 bytes for 64 or 128 elements of y

namespace weft::kernels::cuda {

/// Of kRows x kColumns values of each lane: a warp's moments of each column, which the lanes share that differ in the
/// bits from kDistance up. rows: how many the warp has. value(r, c): of this lane; inside(r): whether it counts.
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

/// Joins the moments of a block's warps, [kWarps][mean, m2][kN] in shared memory, each of kWarpRows rows, and writes
/// those of `columns` columns. rows: of the tile.
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

/// The moments of one convolution's result [rows, channels]: requested by the caller that wants statistics, computed by
/// the launch that can.
class TileMoments {
 public:
  TileMoments(const Queue& queue, int64_t rows, int64_t channels) : queue_(queue), rows_(rows), channels_(channels) {}

  /// The launch of this epilogue gives them, for chunks of `per_chunk` rows.
  template <class T>
  void take(Epilogue<T>& epilogue, int64_t per_chunk) {
    per_chunk_ = per_chunk;
    memory_.emplace(queue_, static_cast<size_t>(2 * chunks() * channels_) * sizeof(Accumulate<T>), "conv2d_statistics");
    epilogue.moments = memory_->template as<Accumulate<T>>();
    epilogue.channels = static_cast<int>(channels_);
  }
  bool taken() const { return memory_.has_value(); }
  /// part = the statistics of all rows, as batch_norm_statistics leaves them.
  void join_into(const View& part) const;

 private:
  int64_t chunks() const { return (rows_ + per_chunk_ - 1) / per_chunk_; }

  const Queue& queue_;
  int64_t rows_, channels_, per_chunk_ = 0;
  std::optional<Workspace> memory_;
};

}  // namespace weft::kernels::cuda
