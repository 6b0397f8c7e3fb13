// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 7. Conflict-free: the same accesses, placed so that no two lanes want different words of one bank.
//
// Shared memory is 32 banks wide; the word at address p lies in bank p / 4 mod 32. Lanes that want different words of
// one bank are serialised. Two repairs:
//
//   reading b (and a): a thread's 8 columns are two squares of 4, 64 columns apart, instead of 8 side by side
//
//      before   lane 0: 0-7    lane 1: 8-15   lane 2: 16-23 …    8 lanes read 0-3, 8-11, … 56-59: every bank twice or
//      never now      lane 0: 0-3    lane 1: 4-7    lane 2:  8-11 …    8 lanes read 0 … 31: every bank once
//               and 64-67          68-71          72-75
//
//   storing the turned a: element m of line k is kept at m ^ 16 when k's quad is odd (a swizzle: another position, no
//   padding). Lanes 2i and 2i+1 hold the same m of quads 0 and 1: now 16 banks apart.
//
// Saves: 20 wavefronts per k and warp become 12 (4 for each read of b, 2 for each of a), for multiply-adds that take 16
// clocks; the store of a 4 instead of 8. Shared memory is no longer what takes longest: predicted 20 / 16 = 1.25 times.
// Others: 68.7% -> 70.8% of cuBLAS for this repair alone (Boehm, before vectorising).
//
// Limit: loading and computing are serialised. While a block waits for its next tile (some 500 clocks), it multiplies
// nothing.

namespace weft::kernels::cuda::matmul_f32_7 {

constexpr int kTileM = 128, kTileN = 128, kTileK = 8, kSide = 8;
constexpr int kAcross = kTileN / kSide, kThreads = kTileM / kSide * kAcross;
using Vec4 = Vec<float, 4>;

/// The position of element m in line k of tile_a; runs of 4 stay together.
__device__ int slot(int k, int m) { return m ^ (k / 4 % 2 * 16); }

__global__ void __launch_bounds__(kThreads)
    matmul_kernel(float* y, const float* a, const float* b, int /*M*/, int N, int K) {
  __shared__ __align__(16) float tile_a[kTileK][kTileM], tile_b[kTileK][kTileN];
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / kAcross * 4, column = thread % kAcross * 4;  // and 64 further
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;
  const int a_m = thread / (kTileK / 4), a_k = thread % (kTileK / 4) * 4;
  const int b_k = thread / (kTileN / 4), b_n = thread % (kTileN / 4) * 4;
  float sum[kSide][kSide] = {};
  for (int k0 = 0; k0 < K; k0 += kTileK) {
    const Vec4 from_a = Vec4::load(a + (first_m + a_m) * K + k0 + a_k);
    const Vec4 from_b = Vec4::load(b + (k0 + b_k) * N + first_n + b_n);
    WEFT_UNROLL
    for (int e = 0; e < 4; ++e) tile_a[a_k + e][slot(a_k, a_m)] = from_a[e];
    from_b.store(&tile_b[b_k][b_n]);
    __syncthreads();
    for (int k = 0; k < kTileK; ++k) {
      Vec4 x[2], w[2];
      WEFT_UNROLL
      for (int half = 0; half < 2; ++half) {
        x[half] = Vec4::load(&tile_a[k][slot(k, row + half * 64)]);
        w[half] = Vec4::load(&tile_b[k][column + half * 64]);
      }
      WEFT_UNROLL
      for (int i = 0; i < kSide; ++i) WEFT_UNROLL
      for (int j = 0; j < kSide; ++j) sum[i][j] += x[i / 4][i % 4] * w[j / 4][j % 4];
    }
    __syncthreads();
  }
  WEFT_UNROLL
  for (int i = 0; i < kSide; ++i) WEFT_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float* s = sum[i] + half * 4;
    Vec4{{s[0], s[1], s[2], s[3]}}.store(y + (first_m + row + i / 4 * 64 + i % 4) * N + first_n + column + half * 64);
  }
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/7_conflict_free", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_f32/7_conflict_free", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_f32/7_conflict_free", "squares 64 apart and a swizzle: no two lanes in one bank",
                     Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_f32_7
