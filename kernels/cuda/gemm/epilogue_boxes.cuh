// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/ptx/ptx_hopper.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"

// Boxes of the wgmma epilogue in shared memory: 16 lines of 128 bytes under the 128-byte swizzle, 64 columns of 16-bit
// results or 32 of f32. A lane has 32 accumulators of a chunk, in pairs: columns 2 (lane mod 4) and the next of each
// group of 8, in lines lane / 4 and lane / 4 + 8.

namespace weft::kernels::cuda {

constexpr int kStagingBoxBytes = 16 * 128;

/// The two staging boxes of one warp, number `index` of warpgroup `group`; the boxes of the group's four warps are
/// contiguous.
class EpilogueWarp {
 public:
  __device__ EpilogueWarp(unsigned char* boxes, int lane, int index, int group)
      : boxes_(boxes), lane_(lane), index_(index), group_(group) {}
  __device__ unsigned char* boxes() const { return boxes_; }
  __device__ int lane() const { return lane_; }
  __device__ int index() const { return index_; }

  /// The box that warp `i` of the group sent last; valid after synchronise().
  __device__ __forceinline__ const unsigned char* sent(int i) const {
    return boxes_ + (2 * (i - index_) + (turn_ ^ 1)) * kStagingBoxBytes;
  }
  __device__ __forceinline__ void synchronise() const {
    __syncwarp();
    if (group_ == 0)  // literal ids: with a variable id, ptxas reserves all 16 barriers
      ptx::named_barrier_sync(1, 128);
    else
      ptx::named_barrier_sync(2, 128);
  }

  /// Writes a box with `fill(box)`, by all lanes, and sends the box to column n, row m, slice z of the map.
  template <class Fill>
  __device__ __forceinline__ void send(const TensorMap& map, int n, int m, int z, Fill&& fill) {
    if (ptx::elect_one()) ptx::tma_store_wait_read<1>();  // always the same lane; this box was sent two calls ago
    __syncwarp();
    unsigned char* const box = boxes_ + turn_ * kStagingBoxBytes;
    fill(box);
    ptx::fence_proxy_async();
    __syncwarp();
    if (ptx::elect_one()) {
      ptx::tma_store(map, box, n, m, z);
      ptx::tma_store_commit();
    }
    turn_ ^= 1;
  }
  /// Writes one box with `fill(box)`, then calls take(i, run, value) for this lane's 16-byte segments: segment `run` of
  /// 8 in line(i), i < 4. Must not be mixed with send().
  template <class Fill, class Take>
  __device__ __forceinline__ void hand_out(Fill&& fill, Take&& take) {
    unsigned char* const box = boxes_ + turn_ * kStagingBoxBytes;
    fill(box);
    __syncwarp();
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int run = lane_ % 8;
      take(i, run, ptx::ld16(box + line(i) * 128 + (run ^ (line(i) & 7)) * 16));
    }
    turn_ ^= 1;  // the box is written again two calls later, after the next call's __syncwarp
  }
  __device__ int line(int i) const { return i * 4 + lane_ / 8; }
  /// Waits until TMA has read both boxes.
  __device__ __forceinline__ void wait_for_boxes() const {
    if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
    __syncwarp();
  }
  /// Waits, before the block ends, until TMA has read all boxes.
  __device__ void finish() const {
    if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
  }

 private:
  unsigned char* boxes_;
  int lane_, index_, group_, turn_ = 0;
};

/// Writes a box of 64 columns of 16 bits.
template <class Y>
__device__ __forceinline__ void fill_box(unsigned char* box, int lane, const float (&values)[32]) {
  const int line = lane % 16;  // lanes 0..15 address the rows of 8 columns, lanes 16..31 the rows of the next 8
  WEFT_UNROLL
  for (int j = 0; j < 8; j += 2) {
    const uint32_t squares[4] = {
        ptx::pack<Y>(values[4 * j], values[4 * j + 1]), ptx::pack<Y>(values[4 * j + 2], values[4 * j + 3]),
        ptx::pack<Y>(values[4 * j + 4], values[4 * j + 5]), ptx::pack<Y>(values[4 * j + 6], values[4 * j + 7])};
    ptx::stmatrix_x4(box + line * 128 + ((j + lane / 16) ^ (line & 7)) * 16, squares);
  }
}

/// Writes a box of 32 columns of f32: half `side` of a lane's values.
__device__ __forceinline__ void fill_wide_box(unsigned char* box, int lane, int side, const float (&values)[32]) {
  WEFT_UNROLL
  for (int j = 0; j < 4; ++j) WEFT_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int line = lane / 4 + 8 * half, run = 2 * j + lane % 4 / 2, i = 16 * side + 4 * j + 2 * half;
    Vec<float, 2> both;
    both[0] = values[i];
    both[1] = values[i + 1];
    both.store(reinterpret_cast<float*>(box + line * 128 + (run ^ (line & 7)) * 16 + lane % 2 * 8));
  }
}

/// The auxiliary operand in shared memory, as TMA wrote it: chunks of 64 rows x 128 bytes, band by band.
struct AuxiliaryChunks {
  const unsigned char *first, *second;  ///< the first stage of the chunks, and the second
  int in_first;                         ///< chunks in the first stage
  int begin;                            ///< the consumer's first chunk

  __device__ __forceinline__ const unsigned char* chunk(int i) const {
    const int at = begin + i;
    return at < in_first ? first + at * kAuxiliaryBytes : second + (at - in_first) * kAuxiliaryBytes;
  }
  static constexpr int kAuxiliaryBytes = 64 * 128;
};

}  // namespace weft::kernels::cuda
