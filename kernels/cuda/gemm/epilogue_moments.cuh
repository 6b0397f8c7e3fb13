// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cfloat>
#include <type_traits>

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/gemm/epilogue_boxes.cuh"
#include "kernels/cuda/ptx/ptx.cuh"

// Batch statistics from the wgmma epilogue (tile_moments.cuh has their form): from boxes in shared memory, as y holds
// them.
//
// 16-bit results are summed by tensor cores. For 16 rows and 8 columns Y of a box, one mma.sync computes [Y | 1]^T Y:
// its upper half has the sums of squares on the diagonal, each row of its lower half has the columns' sums. Products
// are exact in f32, and 64 rows take 8 mma.sync for a warp's 16 columns. Without a shift, M2 = sum y^2 - (sum y)^2 / 64
// cancels where the mean is far from zero. Tensor cores truncate sums to about 2^-20 of the squares; so a warp whose M2
// is below 1 / kLeastShare of the squares reads the boxes again, with a shift.

namespace weft::kernels::cuda {

constexpr int kMomentRows = 64;  ///< rows per block of statistics, those of four warps

/// Batch statistics of a lane's columns of a box.
template <class Y>
struct ColumnMoments {
  static constexpr int kColumns = 4 / static_cast<int>(sizeof(Y));
  float mean[kColumns], m2[kColumns];
};

constexpr float kLeastShare = 32;  ///< sum y^2 / M2 up to which sums by tensor cores keep M2's digits

/// The statistics of 64 full rows by tensor cores; false in all lanes of the warp if a column's cancel.
template <class Y>
__device__ __forceinline__ bool moments_by_mma(const EpilogueWarp& warp, ColumnMoments<Y>& moments) {
  constexpr uint32_t kOnes = std::is_same_v<Y, bf16> ? 0x3f803f80 : 0x3c003c00;
  const int line = warp.lane() % 16, run = 2 * warp.index() + warp.lane() / 16, pair = warp.lane() % 4;
  const unsigned char* const at = warp.sent(0) + line * 128 + (run ^ (line & 7)) * 16;
  float low[4] = {}, high[4] = {};  // columns 0..7 and 8..15
  WEFT_UNROLL
  for (int box = 0; box < 4; ++box) {
    uint32_t y[4];  // rows 0..7 and 8..15 of the low columns, then of the high ones
    ptx::ldmatrix_x4_trans(y, at + box * 2 * kStagingBoxBytes);
    ptx::mma_m16n8k16<Y>(low, {y[0], kOnes, y[1], kOnes}, {y[0], y[1]});
    ptx::mma_m16n8k16<Y>(high, {y[2], kOnes, y[3], kOnes}, {y[2], y[3]});
  }
  const bool is_high = warp.lane() / 4 % 2 != 0;
  bool cancels = false;
  WEFT_UNROLL
  for (int c = 0; c < 2; ++c) {
    const int holder = 9 * pair + 4 * c;  // the lane with the square of column 2 pair + c
    const float of_low = __shfl_sync(0xffffffffu, low[c], holder), of_high = __shfl_sync(0xffffffffu, high[c], holder);
    const float squares = is_high ? of_high : of_low, sum = is_high ? high[2 + c] : low[2 + c];
    moments.mean[c] = sum * (1.0f / kMomentRows);
    moments.m2[c] = squares - sum * moments.mean[c];
    cancels |= !(kLeastShare * moments.m2[c] >= squares && squares <= FLT_MAX);  // NaN and infinities, too
  }
  return __any_sync(0xffffffffu, cancels) == 0;
}

/// Computes the statistics of the group's four boxes just sent, of which `rows` lines are inside y. by_loop: never by
/// tensor cores.
///
/// In the loop a lane reads 4
/// bytes, two neighbouring columns (f32: one), of each row of a box; eight lanes cover this warp's columns. The lanes
/// of each box start at another line, so that a warp's 32 loads hit 32 different banks.
///
/// Each value is read once: d, its distance from the column's first value, is summed, and d^2. m2 = sum d^2 - (sum
/// d)^2 / rows loses at most a factor of rows + 1 in precision: m2 contains the square of the first value's
/// distance.
template <class Y>
__device__ __forceinline__ ColumnMoments<Y> find_moments(const EpilogueWarp& warp, int rows, bool by_loop) {
  constexpr int kColumns = ColumnMoments<Y>::kColumns;
  ColumnMoments<Y> moments;
  warp.synchronise();
  if constexpr (sizeof(Y) == 2)
    if (rows == kMomentRows && !by_loop && moments_by_mma(warp, moments)) return moments;
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
