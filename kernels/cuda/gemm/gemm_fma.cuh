// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/gemm/gemm_epilogue.cuh"
#include "kernels/cuda/gemm/gemm_operand.cuh"
#include "kernels/cuda/gemm/gemm_slice.cuh"
#include "kernels/cuda/gemm/tile_moments.cuh"

// The GEMM main loop for f32 and f64, on the CUDA cores.
//
// Grid: one block per kM x kN tile of the result and per slice. A thread owns kQuadsM x kQuadsN squares of 4 x 4
// accumulators; the 32 threads of a warp form 4 rows x 8 columns, squares of one thread 16 rows and 32 columns apart:
//
//        8 threads x 4 columns, twice.         Every step of k reads, per warp, 16 B x 4 rows of `a` and 16 B x 8
//      +--------------+--------------+         columns of `b`: each is one shared-memory phase without conflicts,
//    4 | square 0,0   | square 0,1   |         for 16 (64 with 2 x 2 squares) fused multiply-adds per thread.
//      +--------------+--------------+
//    4 | square 1,0   | square 1,1   |
//      +--------------+--------------+
//
// Shared memory: two buffers of kDepth = 16 lines of a (kM elements, m along the line) and of b. While one is used, the
// next step is loaded into registers, then stored to the other: one barrier per step. Operands along k are transposed
// by these stores: the 4 elements of a segment go to 4 lines. Element m of line k is at m ^ 8 (k / 4 mod 4). So the
// stores of a warp (8 lines x 4 segments) hit 32 banks.
//
// A problem with `row_sums` (linear_backward_weight) also needs the sum of each of a's rows: in the first tile of each
// tile row, thread m adds column m, line by line.
//
// Work: 2 kM kN flops and (kM + kN) sizeof(T) bytes per k: 32 flops per byte at 128 x 128 f32. Limit: the FMA pipes;
// expected share 70 to 80% of their peak on large matrices.

namespace weft::kernels::cuda {

template <int kRows, int kColumns, int kQuads>
struct FmaTile {
  static constexpr int kM = kRows, kN = kColumns, kDepth = 16, kQuadsM = kQuads, kQuadsN = kQuads;
  static constexpr int kThreads = (kM / (4 * kQuadsM)) * (kN / (4 * kQuadsN));
  static constexpr int kWarpM = 16 * kQuadsM, kWarpN = 32 * kQuadsN, kWarpsN = kN / kWarpN;
  template <class T>
  static constexpr int kSharedBytes = static_cast<int>(sizeof(T)) * 2 * kDepth*(kM + kN);
};

template <class T>
__device__ __forceinline__ void load_quad(T (&to)[4], const T* from) {
  constexpr int kVector = 16 / sizeof(T);
  WEFT_UNROLL
  for (int i = 0; i < 4; i += kVector) {
    const auto part = Vec<T, kVector>::load(from + i);
    WEFT_UNROLL
    for (int j = 0; j < kVector; ++j) to[i + j] = part[j];
  }
}

template <class T>
__device__ __forceinline__ void store_quad(T* to, const T (&from)[4]) {
  constexpr int kVector = 16 / sizeof(T);
  WEFT_UNROLL
  for (int i = 0; i < 4; i += kVector) {
    Vec<T, kVector> part;
    WEFT_UNROLL
    for (int j = 0; j < kVector; ++j) part[j] = from[i + j];
    part.store(to + i);
  }
}

/// The position of element `row` in line k.
__device__ __forceinline__ int fma_slot(int k, int row) { return row ^ (((k >> 2) & 3) << 3); }

/// Loads one operand from global memory through registers into shared lines of kRows elements.
template <class Operand, int kRows, int kThreads>
class FmaStage {
 public:
  using T = typename Operand::Element;
  using Walk = TileWalk<Operand, kRows, 16, 4, kThreads>;

  __device__ FmaStage(const Operand& operand, int first_row, int thread) : walk_(operand, first_row, 0, thread) {}

  __device__ __forceinline__ void fetch(int k) {
    if (walk_.vector()) {
      walk_.each_run(k, [&](int i, bool there, auto address) {
        if (there) {
          load_quad(run_[i], address());
        } else {
          WEFT_UNROLL
          for (int e = 0; e < 4; ++e) run_[i][e] = T(0);
        }
      });
    } else {
      walk_.template each_element<4>(
          k, [&](int i, int e, bool there, auto address) { run_[i][e] = there ? *address() : T(0); });
    }
  }

  __device__ __forceinline__ void deposit(T* lines) const {
    WEFT_UNROLL
    for (int i = 0; i < Walk::kCount; ++i) {
      if constexpr (Walk::kAlongDepth) {
        WEFT_UNROLL
        for (int e = 0; e < 4; ++e) {
          const int k = walk_.run() * 4 + e;
          lines[k * kRows + fma_slot(k, walk_.line(i))] = run_[i][e];
        }
      } else {
        const int k = walk_.line(i);
        store_quad(lines + k * kRows + fma_slot(k, walk_.run() * 4), run_[i]);
      }
    }
  }

 private:
  Walk walk_;
  T run_[Walk::kCount][4];
};

/// Blocks per SM, for __launch_bounds__. Without a bound ptxas stops at 128 registers for f64, slightly too few for
/// loads of single elements. For tiles of 64 x 64 it stops at about 190, and spills.
template <class Tile, class T>
constexpr int fma_blocks() {
  if (sizeof(T) == 8) return 6;
  return Tile::kM == 64 ? 4 : 0;
}

template <class Tile, class T, class Problem>
__global__ void __launch_bounds__(Tile::kThreads, fma_blocks<Tile, T>())
    gemm_fma_kernel(const Problem problem, const GemmGrid grid) {
  constexpr int kM = Tile::kM, kN = Tile::kN, kDepth = Tile::kDepth;
  constexpr int kQuadsM = Tile::kQuadsM, kQuadsN = Tile::kQuadsN;
  T* const shared = dynamic_shared<T>();
  const auto position = grid.position();
  const auto slice = problem.slice(position.z);
  const int first_m = position.m * kM, first_n = position.n * kN;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int row = warp / Tile::kWarpsN * Tile::kWarpM + lane / 8 * 4;
  const int column = warp % Tile::kWarpsN * Tile::kWarpN + lane % 8 * 4;

  T* const lines_a = shared;
  T* const lines_b = shared + 2 * kDepth * kM;
  FmaStage<typename decltype(slice)::A, kM, Tile::kThreads> stage_a(slice.a, first_m, thread);
  FmaStage<typename decltype(slice)::B, kN, Tile::kThreads> stage_b(slice.b, first_n, thread);

  constexpr bool kSumsRows = requires { problem.row_sums; };
  static_assert(!kSumsRows || Tile::kThreads >= kM);
  const bool sums_a_row = kSumsRows && position.n == 0 && thread < kM;
  [[maybe_unused]] T row_sum = 0;
  T sums[kQuadsM][kQuadsN][4][4] = {};
  const int k_end = slice.k_end;
  if (slice.k_begin < k_end) {
    stage_a.fetch(slice.k_begin);
    stage_b.fetch(slice.k_begin);
  }
  int buffer = 0;
  for (int k = slice.k_begin; k < k_end; k += kDepth, buffer ^= 1) {
    T* const a = lines_a + buffer * kDepth * kM;
    T* const b = lines_b + buffer * kDepth * kN;
    stage_a.deposit(a);
    stage_b.deposit(b);
    // Also separates reads of this buffer two steps ago from the stores above: every thread has since passed a barrier.
    __syncthreads();
    if (k + kDepth < k_end) {
      stage_a.fetch(k + kDepth);
      stage_b.fetch(k + kDepth);
    }
    WEFT_UNROLL
    for (int depth = 0; depth < kDepth; ++depth) {
      T x[kQuadsM][4], w[kQuadsN][4];
      WEFT_UNROLL
      for (int q = 0; q < kQuadsM; ++q) load_quad(x[q], a + depth * kM + fma_slot(depth, row + q * 16));
      WEFT_UNROLL
      for (int q = 0; q < kQuadsN; ++q) load_quad(w[q], b + depth * kN + fma_slot(depth, column + q * 32));
      WEFT_UNROLL
      for (int p = 0; p < kQuadsM; ++p) WEFT_UNROLL
      for (int i = 0; i < 4; ++i) WEFT_UNROLL
      for (int q = 0; q < kQuadsN; ++q) WEFT_UNROLL
      for (int j = 0; j < 4; ++j) sums[p][q][i][j] += x[p][i] * w[q][j];
    }
    if constexpr (kSumsRows) {
      if (sums_a_row) {
        WEFT_UNROLL
        for (int depth = 0; depth < kDepth; ++depth) row_sum += a[depth * kM + fma_slot(depth, thread)];
      }
    }
  }
  if constexpr (kSumsRows) {
    const T one[1] = {row_sum};
    if (sums_a_row)
      problem.row_sums.template store<false>(int64_t{position.z} * slice.m + first_m + thread, 0,
                                             slice.m - first_m - thread, one);
  }

  typename Epilogue<T>::Column columns[kQuadsN][4];
  WEFT_UNROLL
  for (int q = 0; q < kQuadsN; ++q) {
    const int n = first_n + column + q * 32;
    problem.epilogue.template columns<Problem::kChannels>(slice.out.first_n + n, slice.n - n, columns[q]);
  }
  if constexpr (Problem::kChannels) {
    if (problem.epilogue.moments != nullptr) {
      const int rows = slice.m - first_m - warp / Tile::kWarpsN * Tile::kWarpM;
      T mean[4 * kQuadsN], m2[4 * kQuadsN];
      warp_moments<8, 4 * kQuadsM>(
          mean, m2, min(max(rows, 0), Tile::kWarpM),
          [&](int r, int c) { return columns[c / 4][c % 4](sums[r / 4][c / 4][r % 4][c % 4]); },
          [&](int r) { return lane / 8 * 4 + r / 4 * 16 + r % 4 < rows; });
      __syncthreads();  // the last step's lines have been read
      if (lane < 8) {
        T* const to = shared + warp / Tile::kWarpsN * 2 * kN + column;
        WEFT_UNROLL
        for (int c = 0; c < 4 * kQuadsN; ++c) {
          to[c / 4 * 32 + c % 4] = mean[c];
          to[kN + c / 4 * 32 + c % 4] = m2[c];
        }
      }
      __syncthreads();
      const int64_t channels = problem.epilogue.channels;
      store_tile_moments<kM / Tile::kWarpM, Tile::kWarpM, kN, Tile::kThreads>(
          problem.epilogue.moments + position.m * 2 * channels + slice.out.first_n + first_n, problem.epilogue.channels,
          shared, slice.m - first_m, slice.n - first_n);
    }
  }

  WEFT_UNROLL
  for (int p = 0; p < kQuadsM; ++p) {
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int m = first_m + row + p * 16 + i;
      const int64_t to = m < slice.m ? slice.out.row(m) : -1;
      if (to < 0) continue;
      WEFT_UNROLL
      for (int q = 0; q < kQuadsN; ++q) {
        const int n = first_n + column + q * 32;
        problem.epilogue.store(to + n, slice.n - n, sums[p][q][i], columns[q]);
      }
    }
  }
}

}  // namespace weft::kernels::cuda
