// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/attention/attention_shape.cuh"
#include "kernels/cuda/ptx/ptx_offset.cuh"

// Shared by the attention kernels on the tensor cores (bf16, f16; sm_80 and later).
//
// A tile is some rows of a head in shared memory: kChannels elements each, in 16-byte segments of 8. ldmatrix reads the
// same segment of 8 neighbouring rows at a time. Segment r of row l is at position r ^ (l mod 8), so that these 8 hit
// different groups of 4 banks. Rows and channels outside the tensor are zeros.
//
// The lanes hold mma.sync's 16 x 8 accumulators in the layout of the next GEMM's left operand: two neighbouring
// accumulator tiles, rounded, are one 16 x 16 fragment. So weights never leave the registers: a kernel that owns
// queries holds s (queries x keys), a kernel that owns keys holds its transpose.

namespace weft::kernels::cuda {

template <int kChannelCount>
struct AttentionTile {
  static constexpr int kChannels = kChannelCount, kRuns = kChannels / 8;

  /// Offset in elements of a segment of 8 elements.
  static __device__ __forceinline__ int run_offset(int row, int run) { return (row * kRuns + (run ^ (row & 7))) * 8; }

  /// Issues the copies of rows first … first + kRows - 1 of a head; rows from `end` on become zeros.
  template <int kRows, int kThreads, class T>
  static __device__ __forceinline__ void load(T* tile, const AttentionTensor<const T>& tensor, const T* head, int first,
                                              int end, int D) {
    static_assert(kThreads % kRuns == 0 && kRows % (kThreads / kRuns) == 0);
    const int run = static_cast<int>(threadIdx.x) % kRuns, line = static_cast<int>(threadIdx.x) / kRuns;
    const T* from = head + (first + line) * tensor.row_stride + run * 8;
    WEFT_UNROLL
    for (int row = line; row < kRows + line; row += kThreads / kRuns) {
      // The address must be valid even if nothing is read.
      const bool there = first + row < end && run * 8 < D;
      ptx::cp_async_zfill<16>(tile + run_offset(row, run), there ? from : head, there ? 16 : 0);
      from += kThreads / kRuns * tensor.row_stride;
    }
  }

  // Fragments: in ldmatrix, lane l addresses row l mod 8 of matrix l / 8. A lane's address is tile + (lane's offset ^ 2
  // channels), since the swizzle permutes channels only and tiles begin at whole rows; the offset of kRow rows is an
  // immediate in the instruction.
  static constexpr int kRowBytes = 2 * kChannels;

  /// A lane's offset in bytes for left operands, and for right operands with K = rows.
  static __device__ __forceinline__ int left_lane(int lane) {
    return 2 * run_offset(lane / 8 % 2 * 8 + lane % 8, lane / 16);
  }
  /// As left_lane(), for right operands with K = channels.
  static __device__ __forceinline__ int right_lane(int lane) {
    return 2 * run_offset(lane / 16 * 8 + lane % 8, lane / 8 % 2);
  }

  /// Loads rows kRow … kRow + 15 by channels k … k + 15: with left_lane() as mma_m16n8k16's a; with right_lane() as the
  /// right operand with K = channels, two fragments of 8 columns.
  template <int kRow>
  static __device__ __forceinline__ void read(uint32_t (&to)[4], ptx::SharedAddress tile, int k, int of_lane) {
    ptx::ldmatrix_x4_at<kRow * kRowBytes>(to, tile + (of_lane ^ 2 * k));
  }
  /// Loads the right operand with K = rows kRow … kRow + 15: channels n … n + 15 are two fragments of 8 columns;
  /// of_lane: left_lane().
  template <int kRow>
  static __device__ __forceinline__ void read_over_rows(uint32_t (&to)[4], ptx::SharedAddress tile, int n,
                                                        int of_lane) {
    ptx::ldmatrix_x4_trans_at<kRow * kRowBytes>(to, tile + (of_lane ^ 2 * n));
  }

  /// Stores a warp's 16 kSquares rows of accumulators, each times its factor. They pass through the warp's own rows of
  /// `tile`, so that global stores have 16 bytes. factor[p][half]: the factor of row 16 p + 8 half + lane / 4.
  template <int kSquares, class T>
  static __device__ __forceinline__ void store(const AttentionTensor<T>& tensor, T* head, T* tile, int row, int first,
                                               int end, int D, int lane, const float (&sums)[kSquares][kRuns][4],
                                               const float (&factor)[kSquares][2]) {
    __syncwarp();
    WEFT_UNROLL
    for (int p = 0; p < kSquares; ++p) WEFT_UNROLL
    for (int n = 0; n < kRuns; ++n) WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {
      T* const to = tile + run_offset(row + p * 16 + half * 8 + lane / 4, n) + lane % 4 * 2;
      *reinterpret_cast<uint32_t*>(to) =
          ptx::pack<T>(sums[p][n][half * 2] * factor[p][half], sums[p][n][half * 2 + 1] * factor[p][half]);
    }
    __syncwarp();
    const int run = lane % kRuns;
    WEFT_UNROLL
    for (int line = lane / kRuns; line < kSquares * 16 + lane / kRuns; line += 32 / kRuns) {
      const int at = first + row + line;
      if (at < end && run * 8 < D)
        ptx::st16(head + at * tensor.row_stride + run * 8, ptx::ld16(tile + run_offset(row + line, run)));
    }
  }
};

/// Packs two neighbouring accumulator tiles as the left operand of a GEMM whose K is their 16 columns.
template <class T>
__device__ __forceinline__ void attention_left(uint32_t (&to)[4], const float (&first)[4], const float (&second)[4]) {
  to[0] = ptx::pack<T>(first[0], first[1]);
  to[1] = ptx::pack<T>(first[2], first[3]);
  to[2] = ptx::pack<T>(second[0], second[1]);
  to[3] = ptx::pack<T>(second[2], second[3]);
}

/// Draws the dropout mask of a lane's 4 weights in a 16 x 8 tile. A Philox block is 2 x 2 weights: the lane and its
/// neighbour in the next row (lane ^ 4) need two blocks, compute one each and exchange halves. row, column: position of
/// the tile's first weight, both even; transposed: rows are keys.
template <bool transposed>
__device__ __forceinline__ void attention_kept(bool (&kept)[4], const AttentionDropout& dropout, float probability,
                                               int row, int column, int lane) {
  const bool odd = lane / 4 % 2 != 0;
  const int pair_row = (row + lane / 8 * 2 + (odd ? 8 : 0)) / 2, pair_column = column / 2 + lane % 4;
  const Philox4 block = transposed ? dropout.block(pair_column, pair_row) : dropout.block(pair_row, pair_column);
  // The words of the block's first and second row.
  const uint32_t top[2] = {block.word[0], block.word[transposed ? 2 : 1]};
  const uint32_t bottom[2] = {block.word[transposed ? 1 : 2], block.word[3]};
  WEFT_UNROLL
  for (int e = 0; e < 2; ++e) {
    const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? top[e] : bottom[e], 4);
    kept[e] = !(uniform01(odd ? other : top[e]) < probability);
    kept[2 + e] = !(uniform01(odd ? bottom[e] : other) < probability);
  }
}

/// Whether the tensor-core kernels can access this tensor: rows must be multiples of 16 bytes.
inline bool fits_attention_mma(const View& view) {
  const auto whole = [&](int d) {
    return view.sizes[d] <= 1 || view.strides[d] * static_cast<int64_t>(size_of(view.dtype)) % 16 == 0;
  };
  return !view || (reinterpret_cast<uintptr_t>(view.data) % 16 == 0 && view.sizes[3] % 8 == 0 && view.sizes[3] <= 128 &&
                   whole(0) && whole(1) && whole(2));
}

// Attention on TMA and wgmma (attention_*_wgmma.cuh). Returns false on devices other than Hopper, or if TMA cannot
// access the views. Defined in attention_*_sm90.cu for bf16 and f16.
template <class T>
bool attention_forward_wgmma(const Queue& queue, const View& y, const View& q, const View& k, const View& v,
                             const AttentionShape& shape, const AttentionProblem<float>& problem);
template <class T>
bool attention_backward_wgmma(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                              const View& q, const View& k, const View& v, const View& y, const AttentionShape& shape,
                              const AttentionProblem<float>& problem);

}  // namespace weft::kernels::cuda
