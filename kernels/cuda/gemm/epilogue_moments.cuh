// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/gemm/epilogue_boxes.cuh"

// Batch statistics from the wgmma epilogue (tile_moments.cuh has their form): from boxes in shared memory, as y holds
// them.

namespace weft::kernels::cuda {

constexpr int kMomentRows = 64;  ///< rows per block of statistics, those of four warps

/// Batch statistics of a lane's columns of a box.
template <class Y>
struct ColumnMoments {
  static constexpr int kColumns = 4 / static_cast<int>(sizeof(Y));
  float mean[kColumns], m2[kColumns];
};

/// Computes the statistics of the group's four boxes just sent, of which `rows` lines are inside y. A lane reads 4
/// bytes, two neighbouring columns (f32: one), of each row of a box; eight lanes cover this warp's columns. The lanes
/// of each box start at another line, so that a warp's 32 loads hit 32 different banks.
///
/// Each value is read once: d, its distance from the column's first value, is summed, and d^2. m2 = sum d^2 - (sum
/// d)^2 / rows loses at most a factor of rows + 1 in precision: m2 contains the square of the first value's
/// distance.
template <class Y>
__device__ __forceinline__ ColumnMoments<Y> find_moments(const EpilogueWarp& warp, int rows) {
  constexpr int kColumns = ColumnMoments<Y>::kColumns;
  warp.synchronise();
  const int quarter = warp.lane() / 8, part = warp.lane() % 8, run = 2 * warp.index() + part / 4;
  const unsigned char* const boxes = warp.sent(0);
  const auto load = [&](int offset) { return Vec<Y, kColumns>::load(reinterpret_cast<const Y*>(boxes + offset)); };
  const auto first = load(run * 16 + part % 4 * 4);
  // The offset of line 2 * quarter; the swizzle of line i ^ (2 * quarter) differs in the bits of i.
  const int own = quarter * (2 * kStagingBoxBytes + 256) + (run ^ (2 * quarter)) * 16 + part % 4 * 4;
  float distances[kColumns] = {}, squares[kColumns] = {};
  const auto add = [&](int i) {
    const auto values = load(own ^ (i * 128 + i % 8 * 16));
    WEFT_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const float distance = from<float>(values[c]) - from<float>(first[c]);
      distances[c] += distance;
      squares[c] += distance * distance;
    }
  };
  if (rows == kMomentRows) {
    WEFT_UNROLL
    for (int i = 0; i < 16; ++i) add(i);
  } else {
    WEFT_UNROLL_BY(1)
    for (int i = 0; i < 16; ++i)
      if (quarter * 16 + (i ^ (2 * quarter)) < rows) add(i);
  }
  const auto of_quarters = [](float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 8);
    return value + __shfl_xor_sync(0xffffffffu, value, 16);
  };
  const float share = rows == kMomentRows ? 1.0f / kMomentRows : 1.0f / static_cast<float>(rows);
  ColumnMoments<Y> moments;
  WEFT_UNROLL
  for (int c = 0; c < kColumns; ++c) {
    const float sum = of_quarters(distances[c]), from_first = sum * share;
    const float m2 = of_quarters(squares[c]) - sum * from_first;
    moments.mean[c] = from<float>(first[c]) + from_first;
    moments.m2[c] = m2 < 0 ? 0 : m2;  // NaN passes
  }
  return moments;
}

/// The first of a lane's columns, counted from its box's.
template <class Y>
__device__ __forceinline__ int moment_column(const EpilogueWarp& warp) {
  return (8 * warp.index() + warp.lane() % 8) * ColumnMoments<Y>::kColumns;
}

}  // namespace weft::kernels::cuda
