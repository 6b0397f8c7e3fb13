// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/gemm_epilogue.cuh"
#include "kernels/cuda/gemm_operand.cuh"
#include "kernels/cuda/gemm_slice.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/tile_moments.cuh"

// The GEMM main loop for bf16, f16 and, where allowed, f32 as tf32, on the tensor cores: cp.async, ldmatrix and
// mma.sync, for sm_80 and later.
//
// Grid: one block per kM x kN tile of the result and per slice; a warp owns kWarpM x kWarpN of it as 16 x 8 squares of
// f32 sums. In a square, lane l holds row l / 4, columns 2 (l mod 4) and the next; and the same 8 rows below.
//
//   memory --cp.async 16 B--> stage 0 | stage 1 | … | stage kStages-1 --ldmatrix--> registers --mma.sync--> sums
//                                      each: a's kM x kDepth, then b's kN x kDepth; kDepth: 64 bytes, 32 or 16 elements
//
// kStages - 1 steps of k are on their way while one is used. One barrier per step: after it, the step that just arrived
// may be read by all, and the stage read in the step before may be filled again.
//
// A stage keeps its operand as memory has it, as lines of 16-byte runs: with Major::depth a line is one m (or n) and 4
// runs of k; with Major::rows a line is one k, and ldmatrix turns each 8 x 8 square on the way to the registers
// (.trans). ldmatrix reads the same run of 8 neighbouring lines at a time. So that these 8 lie in 8 different groups of
// 4 banks, run r of line l is at position r ^ (l mod 8) (lines of 8 runs or more: 128 bytes cover all banks), or r ^
// (l / 2 mod 4) (lines of 4 runs: two lines cover all banks). cp.async writes whole groups of 8 runs: no conflicts
// there either.
//
// tf32: 16 bytes are 4 elements, and mma_m16n8k8_tf32's registers hold one element each, otherwise everything is as for
// two: ldmatrix does not care. Only it cannot turn squares of 4-byte elements: with Major::rows lanes read their
// elements themselves, 8 rows of 4 lines at a time, and run r of line l is at position r ^ 2 (l mod 4), in banks of
// its own. Elements are rounded to tf32 (cvt.rna) on the way to the tensor cores, which would cut them off.
//
// A problem with `row_sums` (linear_backward_weight) also wants the sum of each of a's rows: where the tile is the
// first of its row, threads add up what the stage holds, while the tensor cores are busy with it.
//
// What lies outside the matrix or in an image's padding is written as zeros (cp.async with source size 0). Operands
// that forbid 16-byte loads (3 channels, odd sizes) go element by element through registers to the same positions.
//
// Work: 2 kM kN flops and 2 (kM + kN) bytes per k: 64 flops per byte at 128 x 128, from L2 mostly. Limit: tensor cores.
// An A100's (1,024 products a cycle in each multiprocessor) take 64 cycles for 64 x 64 sums and 16 of k. A warp's
// fragments for them are 4 KiB of shared memory, 32 cycles at 128 bytes, and a quarter of the tile's next 8 KiB comes
// in, 16 cycles: three quarters of what shared memory can give (warps of 64 x 32 would want all of it). Expected share
// 70 to 80% of an A100's peak. On sm_90 mma.sync reaches about 60% of what wgmma can: there gemm_wgmma.cuh takes over
// whatever TMA can read.

namespace weft::kernels::WEFT_DEVICE {

template <int kRows, int kColumns, int kWarpRows, int kWarpColumns, int kStageCount>
struct MmaTile {
  static constexpr int kM = kRows, kN = kColumns, kWarpM = kWarpRows, kWarpN = kWarpColumns;
  static constexpr int kStages = kStageCount, kWarpsN = kN / kWarpN;
  static constexpr int kThreads = kM / kWarpM * kWarpsN * 32;
  static constexpr int kBlocksPerSm = kWarpN == 64 ? 2 : 1;  // at least: 255 registers for its 128 sums
  template <class T>
  static constexpr int kDepth = 64 / static_cast<int>(sizeof(T));
  template <class T>
  static constexpr int kSharedBytes = 64 * kStages*(kM + kN);
};

/// A square of sums: d[16x8] += a b over 32 bytes of depth.
template <class T>
__device__ __forceinline__ void multiply_square(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, float>)
    ptx::mma_m16n8k8_tf32(d, a, b);
  else
    ptx::mma_m16n8k16<T>(d, a, b);
}

/// f32 elements as the tensor cores shall see them.
template <class T>
__device__ __forceinline__ void round_fragment(uint32_t (&bits)[4]) {
  if constexpr (std::is_same_v<T, float>) {
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) bits[i] = ptx::to_tf32(__uint_as_float(bits[i]));
  }
}

/// One operand's tiles in shared memory: filled from memory, read as mma.sync's fragments.
template <class Operand, int kRows, int kThreads>
class MmaStage {
 public:
  using T = typename Operand::Element;
  static constexpr int kRun = 16 / static_cast<int>(sizeof(T));  ///< elements of a run
  using Walk = TileWalk<Operand, kRows, 4 * kRun, kRun, kThreads>;
  static constexpr int kRuns = Walk::kRunsPerLine;
  static constexpr bool kTurnsByHand = sizeof(T) == 4 && !Walk::kAlongDepth;

  __device__ MmaStage(const Operand& operand, int first_row, int thread) : walk_(operand, first_row, thread) {}

  /// Offset in elements of a run within a tile.
  __device__ static int run_offset(int line, int run) {
    const int turned = kTurnsByHand ? run ^ ((line & 3) << 1) : kRuns >= 8 ? run ^ (line & 7) : run ^ ((line >> 1) & 3);
    return (line * kRuns + turned) * kRun;
  }

  __device__ __forceinline__ void fill(T* tile, int k) const {
    if (walk_.vector()) {
      walk_.each_run(k, [&](int i, bool there, auto address) {
        ptx::cp_async_zfill<16>(tile + run_offset(walk_.line(i), walk_.run()), there ? address() : walk_.somewhere(),
                                there ? 16 : 0);
      });
    } else {
      walk_.template each_element<2>(k, [&](int i, int e, bool there, auto address) {
        T* const to = tile + run_offset(walk_.line(i), walk_.run()) + e;
        if constexpr (sizeof(T) == 4)
          *to = there ? *address() : T(0);
        else
          to->bits = there ? address()->bits : static_cast<uint16_t>(0);
      });
    }
  }

  /// Four squares of 8 rows by 16 bytes of depth: rows row … row + 15, twice that depth from k. Squares 0 and 1 lie
  /// side by side along the rows when `rows_first` (the order of mma's a), along k otherwise (b of two neighbouring n8
  /// squares).
  template <bool rows_first>
  __device__ __forceinline__ static void fragment(uint32_t (&to)[4], const T* tile, int row, int k, int lane) {
    const int square = lane / 8;
    const int down = (rows_first ? square & 1 : square >> 1) * 8;
    const int along = (rows_first ? square >> 1 : square & 1) * kRun;
    if constexpr (Walk::kAlongDepth) {
      ptx::ldmatrix_x4(to, tile + run_offset(row + down + lane % 8, (k + along) / kRun));
    } else if constexpr (kTurnsByHand) {
      WEFT_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int m = row + (rows_first ? i & 1 : i >> 1) * 8 + lane / 4;
        const int line = k + (rows_first ? i >> 1 : i & 1) * kRun + lane % 4;
        to[i] = __float_as_uint(tile[run_offset(line, m / kRun) + m % kRun]);
      }
    } else {
      ptx::ldmatrix_x4_trans(to, tile + run_offset(k + along + lane % 8, (row + down) / 8));
    }
  }

 private:
  Walk walk_;
};

/// Sums of a tile's rows of a, whose lines are steps of k. Thread t adds the 4 bytes t mod kWords of its share of each
/// step's lines: a warp reads 128 bytes in all banks, and no fragment has to stay in registers.
template <class Tile, class T>
class MmaRowSums {
  static constexpr int kM = Tile::kM, kEach = 4 / static_cast<int>(sizeof(T)), kWords = kM / kEach;
  static constexpr int kShares = Tile::kThreads / kWords, kLines = Tile::template kDepth<T> / kShares;
  static_assert(kShares * kWords == Tile::kThreads && kM <= Tile::kThreads);

 public:
  __device__ explicit MmaRowSums(int thread) : thread_(thread) {}

  template <class Stage>
  __device__ __forceinline__ void add(const T* tile) {
    const int m = thread_ % kWords * kEach, first_line = thread_ / kWords * kLines;
    WEFT_UNROLL
    for (int i = 0; i < kLines; ++i) {
      const auto word =
          Vec<T, kEach>::load(tile + Stage::run_offset(first_line + i, m / Stage::kRun) + m % Stage::kRun);
      WEFT_UNROLL
      for (int e = 0; e < kEach; ++e) sums_[e] += static_cast<float>(word[e]);
    }
  }

  /// Adds the shares, in order, and stores the rows first_m … of slice z, each of m rows. All threads of the block;
  /// `shares`: shared memory for what each has summed.
  __device__ __forceinline__ void store(const Epilogue<T>& to, float* shares, int first_m, int m, int z) const {
    WEFT_UNROLL
    for (int e = 0; e < kEach; ++e) shares[thread_ * kEach + e] = sums_[e];
    __syncthreads();
    if (thread_ >= kM) return;
    float sum[1] = {0};
    WEFT_UNROLL
    for (int share = 0; share < kShares; ++share) sum[0] += shares[share * kM + thread_];
    to.template store<false>(int64_t{z} * m + first_m + thread_, 0, m - first_m - thread_, sum);
  }

 private:
  int thread_;
  float sums_[kEach] = {};
};

template <class Tile, class T, class Problem>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocksPerSm)
    gemm_mma_kernel(const Problem problem, const GemmGrid grid) {
  constexpr int kM = Tile::kM, kDepth = Tile::template kDepth<T>, kStages = Tile::kStages;
  constexpr int kStageElements = kDepth * (kM + Tile::kN), kStep = kDepth / 2;
  constexpr int kSquaresM = Tile::kWarpM / 16, kSquaresN = Tile::kWarpN / 8;
  WEFT_DYNAMIC_SHARED(T, shared);
  const auto position = grid.position();
  const auto slice = problem.slice(position.z);
  const int first_m = position.m * kM, first_n = position.n * Tile::kN;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int row = warp / Tile::kWarpsN * Tile::kWarpM, column = warp % Tile::kWarpsN * Tile::kWarpN;

  using StageA = MmaStage<typename decltype(slice)::A, kM, Tile::kThreads>;
  using StageB = MmaStage<typename decltype(slice)::B, Tile::kN, Tile::kThreads>;
  const StageA stage_a(slice.a, first_m, thread);
  const StageB stage_b(slice.b, first_n, thread);
  const int steps = slice.k_end > slice.k_begin ? (slice.k_end - slice.k_begin + kDepth - 1) / kDepth : 0;

  // Steps beyond the last commit an empty group, so that "all but the newest kStages - 2" always means step `step`.
  const auto fill = [&](int step) {
    if (step < steps) {
      T* const tile = shared + step % kStages * kStageElements;
      stage_a.fill(tile, slice.k_begin + step * kDepth);
      stage_b.fill(tile + kM * kDepth, slice.k_begin + step * kDepth);
    }
    ptx::cp_async_commit();
  };

  constexpr bool kSumsRows = requires { problem.row_sums; };
  [[maybe_unused]] MmaRowSums<Tile, T> row_sums(thread);
  float sums[kSquaresM][kSquaresN][4] = {};
  WEFT_UNROLL
  for (int step = 0; step < kStages - 1; ++step) fill(step);
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncthreads();
    fill(step + kStages - 1);
    const T* const a = shared + step % kStages * kStageElements;
    const T* const b = a + kM * kDepth;
    WEFT_UNROLL
    for (int k = 0; k < kDepth; k += kStep) {
      uint32_t x[kSquaresM][4], w[kSquaresN / 2][4];
      WEFT_UNROLL
      for (int p = 0; p < kSquaresM; ++p) StageA::template fragment<true>(x[p], a, row + p * 16, k, lane);
      WEFT_UNROLL
      for (int q = 0; q < kSquaresN / 2; ++q) StageB::template fragment<false>(w[q], b, column + q * 16, k, lane);
      WEFT_UNROLL
      for (int p = 0; p < kSquaresM; ++p) round_fragment<T>(x[p]);
      WEFT_UNROLL
      for (int q = 0; q < kSquaresN / 2; ++q) round_fragment<T>(w[q]);
      WEFT_UNROLL
      for (int p = 0; p < kSquaresM; ++p) WEFT_UNROLL
      for (int q = 0; q < kSquaresN; ++q)
        multiply_square<T>(sums[p][q], x[p], {w[q / 2][q % 2 * 2], w[q / 2][q % 2 * 2 + 1]});
    }
    if constexpr (kSumsRows) {
      if (position.n == 0) row_sums.template add<StageA>(a);
    }
  }
  if constexpr (kSumsRows) {
    __syncthreads();  // the last step's tiles have been read
    if (position.n == 0)
      row_sums.store(problem.row_sums, reinterpret_cast<float*>(shared), first_m, slice.m, position.z);
  }

  typename Epilogue<T>::Column columns[kSquaresN][2];
  WEFT_UNROLL
  for (int q = 0; q < kSquaresN; ++q) {
    const int n = first_n + column + q * 8 + lane % 4 * 2;
    problem.epilogue.template columns<Problem::kChannels>(slice.out.first_n + n, slice.n - n, columns[q]);
  }
  if constexpr (Problem::kChannels) {
    if (problem.epilogue.moments != nullptr) {
      const int rows = slice.m - first_m - row;
      float mean[2 * kSquaresN], m2[2 * kSquaresN];
      warp_moments<4, 2 * kSquaresM>(
          mean, m2, min(max(rows, 0), Tile::kWarpM),
          [&](int r, int c) {
            const auto& of = columns[c / 2][c % 2];
            return static_cast<float>(static_cast<T>(of(sums[r / 2][c / 2][r % 2 * 2 + c % 2])));
          },
          [&](int r) { return r * 8 + lane / 4 < rows; });
      auto* const of_warps = reinterpret_cast<float*>(shared);
      __syncthreads();  // the last step's tiles have been read
      if (lane < 4) {
        float* const to = of_warps + warp / Tile::kWarpsN * 2 * Tile::kN + column + lane * 2;
        WEFT_UNROLL
        for (int c = 0; c < 2 * kSquaresN; ++c) {
          to[c / 2 * 8 + c % 2] = mean[c];
          to[Tile::kN + c / 2 * 8 + c % 2] = m2[c];
        }
      }
      __syncthreads();
      const int64_t channels = problem.epilogue.channels;
      store_tile_moments<kM / Tile::kWarpM, Tile::kWarpM, Tile::kN, Tile::kThreads>(
          problem.epilogue.moments + position.m * 2 * channels + slice.out.first_n + first_n, problem.epilogue.channels,
          of_warps, slice.m - first_m, slice.n - first_n);
    }
  }

  // Not unrolled, so that the epilogue's code exists once; the sums move up instead, since registers have no
  // index.
  WEFT_UNROLL_BY(1)
  for (int p = 0; p < kSquaresM; ++p) {
    WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int m = first_m + row + p * 16 + half * 8 + lane / 4;
      const int64_t to = m < slice.m ? slice.out.row(m) : -1;
      if (to < 0) continue;
      WEFT_UNROLL
      for (int q = 0; q < kSquaresN; ++q) {
        const int n = first_n + column + q * 8 + lane % 4 * 2;
        const float pair[2] = {sums[0][q][half * 2], sums[0][q][half * 2 + 1]};
        problem.epilogue.store(to + n, slice.n - n, pair, columns[q]);
      }
    }
    WEFT_UNROLL
    for (int up = 1; up < kSquaresM; ++up) WEFT_UNROLL
    for (int q = 0; q < kSquaresN; ++q) WEFT_UNROLL
    for (int i = 0; i < 4; ++i) sums[up - 1][q][i] = sums[up][q][i];
  }
}

}  // namespace weft::kernels::WEFT_DEVICE
