// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/gemm/gemm_epilogue.cuh"
#include "kernels/cuda/gemm/gemm_operand.cuh"
#include "kernels/cuda/gemm/gemm_slice.cuh"
#include "kernels/cuda/gemm/tile_moments.cuh"

// The GEMM main loop for bf16, f16 and, where allowed, f32 as tf32, on the tensor cores: cp.async, ldmatrix and
// mma.sync, for sm_80 and later.
//
// Grid: one block per kM x kN tile of the result and per slice; a warp owns kWarpM x kWarpN of it as 16 x 8 fragments
// of f32 accumulators. In a fragment, lane l holds row l / 4, columns 2 (l mod 4) and the next; and the same columns 8
// rows below.
//
//   memory --cp.async 16 B--> stage 0 | stage 1 | … | stage kStages-1 --ldmatrix--> registers --mma.sync--> sums
//                                      each: a's kM x kDepth, then b's kN x kDepth; kDepth: 64 bytes, 32 or 16 elements
//
// A step of kDepth is multiplied in two halves of 32 bytes. While one half's fragments are multiplied, the other half's
// are loaded into registers:
//
//   step t      start copies of step t + kStages - 1 | read half 1 of t | multiply half 0 | wait, barrier |
//               read half 0 of t + 1                                    | multiply half 1
//
// kStages - 1 K steps are in flight while one is used. One barrier per step: after the barrier, all threads may read
// the newest complete step, and the stage that all have read may be refilled.
//
// A stage keeps the operand's layout in memory, as lines of 16-byte segments: with Major::depth a line is an m (or an
// n) and 4 segments of k; with Major::rows a line is a k, and ldmatrix.trans transposes each 8 x 8 matrix. ldmatrix
// reads the same segment of 8 neighbouring lines at a time. The swizzle puts these 8 into different groups of 4 banks:
// segment r of line l is at position r ^ (l mod 8) (lines of 8 segments or more: 128 bytes cover all banks), or r ^ (l
// / 2 mod 4) (lines of 4 segments: two lines cover all banks). cp.async writes whole groups of 8 segments, also without
// conflicts.
//
// Addresses: the swizzle repeats after 8 or 16 lines. So the destinations of a thread's copies differ by constants (in
// tiles of 64 x 128 every second one). So do the addresses of a warp's fragments, except per half (Major::depth) or per
// matrix (Major::rows), which have a register each. In each step the stage's offset is added to the registers;
// constants are immediates in the instructions.
//
// tf32: 16 bytes are 4 elements, and mma_m16n8k8_tf32's registers hold one element each; ldmatrix works as for two-byte
// types. But ldmatrix cannot transpose 4-byte elements: with Major::rows lanes load single elements, 8 rows of 4 lines
// at a time. Segment r of line l is at position r ^ 2 (l mod 4), without bank conflicts. Elements are rounded to
// tf32 (cvt.rna) in registers, since the tensor cores would truncate.
//
// A problem with `row_sums` (linear_backward_weight) also needs the sum of each of a's rows: in the first tile of each
// tile row, threads add the stage's elements while the tensor cores multiply the stage.
//
// Elements beyond K or in an image's padding become zeros (cp.async with source size 0). Operands that do not allow
// 16-byte loads (3 channels, odd sizes) are loaded element by element through registers.
//
// Epilogue: accumulators pass through shared memory, 16 rows of a warp at a time: a lane stores 4 neighbours, a warp
// lines of 128 bytes, and the epilogue's code exists once.
//
// Work: 2 kM kN flops and 2 (kM + kN) bytes per k: 64 flops per byte at 128 x 128, 85 at 128 x 256, 51 at 256 x 64,
// from L2 mostly. Limit: tensor cores. An A100's (1,024 multiply-adds per cycle and SM) take 64 cycles for 64 x 64
// results and 16 k. A warp's fragments for these are 4 KiB of shared memory, 32 cycles at 128 bytes; its share of the
// tile's next 32 bytes takes 16 cycles (128 x 256: 12, 256 x 64: 20, 64 x 128: 24). This is 69 to 88% of the
// shared-memory bandwidth. Warps of 64 x 32 would need all of the bandwidth; warps of 32 x 32 in tiles of 64 x 64 need
// 1.5 times that. On sm_90 mma.sync reaches about 60% of wgmma's peak: there gemm_wgmma.cuh is used whenever TMA
// can read the operands.

namespace weft::kernels::cuda {

template <int kRows, int kColumns, int kWarpRows, int kWarpColumns, int kStageCount>
struct MmaTile {
  static constexpr int kM = kRows, kN = kColumns, kWarpM = kWarpRows, kWarpN = kWarpColumns;
  static constexpr int kStages = kStageCount, kWarpsN = kN / kWarpN;
  static constexpr int kThreads = kM / kWarpM * kWarpsN * 32;
  static constexpr int kBlocksPerSm = kWarpN == 64 ? 256 / kThreads : 1;  // minimum: 255 registers, 128 accumulators
  template <class T>
  static constexpr int kDepth = 64 / static_cast<int>(sizeof(T));
  static constexpr int kStageBytes = 64 * (kM + kN);
  template <class T>
  static constexpr int kSharedBytes = (kStages * kStageBytes);
  static_assert(kStages * kStageBytes <= 99 * 1024);  // the limit per block of compute capability 8.6
};

/// One fragment of accumulators: d[16x8] += a b over 32 bytes of K.
template <class T>
__device__ __forceinline__ void multiply_square(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, float>)
    ptx::mma_m16n8k8_tf32(d, a, b);
  else
    ptx::mma_m16n8k16<T>(d, a, b);
}

/// Rounds f32 elements to tf32; does nothing for other types.
template <class T>
__device__ __forceinline__ void round_fragment(uint32_t (&bits)[4]) {
  if constexpr (std::is_same_v<T, float>) {
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) bits[i] = ptx::to_tf32(__uint_as_float(bits[i]));
  }
}

/// One operand's tiles in shared memory: filled from global memory, read as mma.sync's fragments by warps with
/// kWarpRows rows each. A fragment has four matrices of 8 rows by 16 bytes of k: 16 rows by 32 bytes. Matrices 0 and 1
/// are neighbours along the rows with kRowsFirst (mma's a), else along k (b of two neighbouring n8 tiles). `stage`:
/// offset of a stage in bytes.
template <class Operand, bool kRowsFirst, int kRows, int kWarpRows, int kThreads>
class MmaStage {
 public:
  using T = typename Operand::Element;
  static constexpr int kRun = 16 / static_cast<int>(sizeof(T));  ///< elements per 16-byte segment
  using Walk = TileWalk<Operand, kRows, 4 * kRun, kRun, kThreads>;
  static constexpr int kRuns = Walk::kRunsPerLine, kLineBytes = 16 * kRuns, kSquares = kWarpRows / 16;
  static constexpr bool kTurnsByHand = sizeof(T) == 4 && !Walk::kAlongDepth;
  static constexpr int kWrites = Walk::kLineStep % (kTurnsByHand ? 4 : 8) == 0 ? 1 : 2;
  static_assert(kWrites * Walk::kLineStep % (kTurnsByHand ? 4 : 8) == 0);  // every (other) run has the same swizzle

  /// `tile`: address in stage 0. first_row, k: start of the tile and of its first step; row: the warp's first row in
  /// the tile.
  __device__ MmaStage(const Operand& operand, T* tile, int first_row, int k, int row, int thread)
      : walk_(operand, first_row, k, thread), tile_(tile), row_(row), lane_(thread % 32) {
    const auto address = [&](int line, int run) { return ptx::to_shared(tile + run_offset(line, run)); };
    WEFT_UNROLL
    for (int i = 0; i < kWrites; ++i) write_[i] = address(walk_.line(i), walk_.run());
    const int down = kRowsFirst ? lane_ / 8 % 2 : lane_ / 16, along = kRowsFirst ? lane_ / 16 : lane_ / 8 % 2;
    WEFT_UNROLL
    for (int i = 0; i < kBases; ++i)
      read_[i] = Walk::kAlongDepth ? address(row + down * 8 + lane_ % 8, i * 2 + along)
                                   : address(along * 8 + lane_ % 8, row / 8 + i * 2 + down);
  }

  /// Offset in elements of a segment within a tile.
  __device__ static int run_offset(int line, int run) {
    const int turned = kTurnsByHand ? run ^ ((line & 3) << 1) : kRuns >= 8 ? run ^ (line & 7) : run ^ ((line >> 1) & 3);
    return (line * kRuns + turned) * kRun;
  }

  __device__ T* tile(int stage) const { return tile_ + stage / static_cast<int>(sizeof(T)); }

  /// Issues the copies of the next step, which begins at k. kVectors: 16-byte loads are known to be allowed.
  template <bool kVectors>
  __device__ __forceinline__ void fill(int stage, int k) {
    if (kVectors || walk_.vector()) {
      walk_.next_step([&](auto i, bool there, const T* from) {
        constexpr int kWrite = i.value % kWrites;
        ptx::cp_async_zfill_at<(i.value - kWrite) * Walk::kLineStep * kLineBytes>(write_[kWrite] + stage, from, there);
      });
    } else {
      walk_.template each_element<2>(k, [&](int i, int e, bool there, auto address) {
        T* const to = tile(stage) + run_offset(walk_.line(i), walk_.run()) + e;
        if constexpr (sizeof(T) == 4)
          *to = there ? *address() : T(0);
        else
          to->bits = there ? address()->bits : static_cast<uint16_t>(0);
      });
    }
  }

  /// Loads the warp's fragments of one half (0, 1) of a step; f32 is rounded to tf32.
  template <int kHalf>
  __device__ __forceinline__ void read(uint32_t (&to)[kSquares][4], int stage) const {
    unrolled<kSquares>([&](auto p) {
      if constexpr (Walk::kAlongDepth) {
        ptx::ldmatrix_x4_at<p.value * 16 * kLineBytes>(to[p.value], read_[kHalf] + stage);
      } else if constexpr (!kTurnsByHand) {
        ptx::ldmatrix_x4_trans_at<kHalf * 16 * kLineBytes>(to[p.value], read_[p.value] + stage);
      } else {
        WEFT_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int m = row_ + p.value * 16 + (kRowsFirst ? i & 1 : i >> 1) * 8 + lane_ / 4;
          const int line = (kHalf * 2 + (kRowsFirst ? i >> 1 : i & 1)) * kRun + lane_ % 4;
          to[p.value][i] = __float_as_uint(tile(stage)[run_offset(line, m / kRun) + m % kRun]);
        }
      }
    });
    WEFT_UNROLL
    for (int p = 0; p < kSquares; ++p) round_fragment<T>(to[p]);
  }

 private:
  static constexpr int kBases = kTurnsByHand ? 0 : Walk::kAlongDepth ? 2 : kSquares;

  Walk walk_;
  T* tile_;
  int row_, lane_;
  ptx::SharedAddress write_[kWrites], read_[kBases > 0 ? kBases : 1];
};

/// Sums of a tile's rows of a; each line is one k. Thread t adds word t mod kWords of its share of each step's lines: a
/// warp reads 128 bytes from all banks, and no fragment stays in registers.
template <class Tile, class T>
class MmaRowSums {
  static constexpr int kM = Tile::kM, kEach = 4 / static_cast<int>(sizeof(T)), kWords = kM / kEach;
  static constexpr int kShares = Tile::kThreads / kWords, kLines = Tile::template kDepth<T> / kShares;
  static_assert(kShares * kWords == Tile::kThreads);

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

  /// Adds the threads' partial sums in order and stores rows first_m … of slice z; a slice has m rows. All threads of
  /// the block must call. `shares`: shared memory for the partial sums.
  __device__ __forceinline__ void store(const Epilogue<T>& to, float* shares, int first_m, int m, int z) const {
    static_assert(kM <= Tile::kThreads);
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

template <class Operand>
inline constexpr bool kIsMatrix = false;
template <class T, Major major>
inline constexpr bool kIsMatrix<MatrixOperand<T, major>> = true;

/// Tiles that would spill on sm_90a. There launch_gemm() uses large tiles, with bit-identical results; on Hopper nearly
/// all of these convolutions run on wgmma.
template <class Tile, class Slice>
inline constexpr bool kBeforeHopper =
    Tile::kM* Tile::kN > 128 * 128 && !(kIsMatrix<typename Slice::A> && kIsMatrix<typename Slice::B>);

template <class Tile, class T, class Problem>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocksPerSm)
    gemm_mma_kernel(const Problem problem, const GemmGrid grid) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (kBeforeHopper<Tile, typename Problem::Slice>) return;  // never launched
#endif
  constexpr int kM = Tile::kM, kN = Tile::kN, kDepth = Tile::template kDepth<T>, kStages = Tile::kStages;
  constexpr int kStageBytes = Tile::kStageBytes;
  constexpr int kSquaresM = Tile::kWarpM / 16, kSquaresN = Tile::kWarpN / 8;
  T* const shared = dynamic_shared<T>();
  const auto position = grid.position();
  const auto slice = problem.slice(position.z);
  const int first_m = position.m * kM, first_n = position.n * kN;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int row = warp / Tile::kWarpsN * Tile::kWarpM, column = warp % Tile::kWarpsN * Tile::kWarpN;

  using StageA = MmaStage<typename decltype(slice)::A, true, kM, Tile::kWarpM, Tile::kThreads>;
  using StageB = MmaStage<typename decltype(slice)::B, false, kN, Tile::kWarpN, Tile::kThreads>;
  StageA stage_a(slice.a, shared, first_m, slice.k_begin, row, thread);
  StageB stage_b(slice.b, shared + kM * kDepth, first_n, slice.k_begin, column, thread);

  constexpr bool kSumsRows = requires { problem.row_sums; };
  [[maybe_unused]] MmaRowSums<Tile, T> row_sums(thread);
  float sums[kSquaresM][kSquaresN][4] = {};
  struct Fragments {
    uint32_t a[kSquaresM][4], b[kSquaresN / 2][4];
  };
  Fragments half[2];
  const auto read = [&]<int kHalf>(int stage) {
    stage_a.template read<kHalf>(half[kHalf].a, stage);
    stage_b.template read<kHalf>(half[kHalf].b, stage);
  };
  const auto multiply = [&](const Fragments& by) {
    WEFT_UNROLL
    for (int p = 0; p < kSquaresM; ++p) WEFT_UNROLL
    for (int q = 0; q < kSquaresN; ++q)
      multiply_square<T>(sums[p][q], by.a[p], {by.b[q / 2][q % 2 * 2], by.b[q / 2][q % 2 * 2 + 1]});
  };

  // Steps beyond the last also commit a group, so that "all but the newest kStages - 2" is always the next step to
  // read. With kVectors these steps copy zeros that are never used: without a branch, address computations are
  // scheduled between the mma instructions.
  const auto multiply_all = [&]<bool kVectors>() {
    int next_k = slice.k_begin;  // first k of the next step to copy
    const auto fill = [&](int stage) {
      if (kVectors || next_k < slice.k_end) {
        stage_a.template fill<kVectors>(stage, next_k);
        stage_b.template fill<kVectors>(stage, next_k);
      }
      next_k += kDepth;
      ptx::cp_async_commit();
    };
    const auto wait = [&] {
      ptx::cp_async_wait_group<kStages - 2>();
      __syncthreads();
    };
    int left = slice.k_end - slice.k_begin, stage = 0, empty = (kStages - 1) * kStageBytes;
    if (left <= 0) return;
    WEFT_UNROLL
    for (int s = 0; s < kStages - 1; ++s) fill(s * kStageBytes);
    wait();
    if constexpr (kVectors) read.template operator()<0>(stage);
    for (; left > 0; left -= kDepth) {
      fill(empty);
      if constexpr (!kVectors) read.template operator()<0>(stage);  // single elements need the registers until here
      read.template operator()<1>(stage);
      multiply(half[0]);
      if constexpr (kSumsRows) {
        if (position.n == 0) row_sums.template add<StageA>(stage_a.tile(stage));
      }
      if constexpr (!kVectors) multiply(half[1]);
      empty = stage;
      stage = stage == (kStages - 1) * kStageBytes ? 0 : stage + kStageBytes;
      wait();
      if constexpr (kVectors) {
        read.template operator()<0>(stage);
        multiply(half[1]);
      }
    }
    ptx::cp_async_wait_all();  // the zeros too: the epilogue reuses the memory
  };
  if (slice.a.vector && slice.b.vector)
    multiply_all.template operator()<true>();
  else
    multiply_all.template operator()<false>();
  if constexpr (kSumsRows) {
    __syncthreads();  // the last step's tiles have been read
    if (position.n == 0)
      row_sums.store(problem.row_sums, reinterpret_cast<float*>(shared), first_m, slice.m, position.z);
  }

  if constexpr (Problem::kChannels) {
    if (problem.epilogue.moments != nullptr) {
      const int rows = slice.m - first_m - row;
      typename Epilogue<T>::Column columns[kSquaresN][2];
      WEFT_UNROLL
      for (int q = 0; q < kSquaresN; ++q) {
        const int n = first_n + column + q * 8 + lane % 4 * 2;
        problem.epilogue.template columns<true>(slice.out.first_n + n, slice.n - n, columns[q]);
      }
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

  // 8 floats of padding per row avoid bank conflicts between rows.
  constexpr int kPitch = Tile::kWarpN + 8, kLanes = Tile::kWarpN / 4;
  static_assert(Tile::kThreads / 32 * 16 * kPitch * 4 <= Tile::template kSharedBytes<T>);
  float* const rows = reinterpret_cast<float*>(shared) + warp * 16 * kPitch;
  const int n = first_n + column + lane % kLanes * 4;
  typename Epilogue<T>::Column columns[4];
  problem.epilogue.template columns<Problem::kChannels>(slice.out.first_n + n, slice.n - n, columns);
  const bool plain = problem.epilogue.is_plain();
  __syncthreads();  // shared memory has been read
  WEFT_UNROLL_BY(1)
  for (int turn = 0; turn < kSquaresM; ++turn) {
    WEFT_UNROLL
    for (int p = 0; p < kSquaresM; ++p) {
      if (p != turn) continue;  // registers have no index
      WEFT_UNROLL
      for (int q = 0; q < kSquaresN; ++q) WEFT_UNROLL
      for (int down = 0; down < 2; ++down)
        Vec<float, 2>{{sums[p][q][down * 2], sums[p][q][down * 2 + 1]}}.store(rows + (lane / 4 + down * 8) * kPitch +
                                                                              q * 8 + lane % 4 * 2);
    }
    __syncwarp();
    WEFT_UNROLL_BY(1)
    for (int r = lane / kLanes; r < 16; r += 32 / kLanes) {
      const int m = first_m + row + turn * 16 + r;
      const int64_t to = m < slice.m ? slice.out.row(m) : -1;
      const auto four = Vec<float, 4>::load(rows + r * kPitch + lane % kLanes * 4);
      if (to >= 0) problem.epilogue.store(to + n, slice.n - n, four.data, columns, plain);
    }
    __syncwarp();
  }
}

}  // namespace weft::kernels::cuda
