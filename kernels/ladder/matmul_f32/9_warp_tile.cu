// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 9. Warp tile: a warp's 32 threads form 4 x 8, not 2 x 16.
//
// Shared memory serves warps, so what counts is how much a WARP reads for its 32 x 64 multiply-adds per k:
//
//        2 x 16 threads (step 8)                    4 x 8 threads
//          128 columns of b                           64 columns of b
//        +----------------------------+             +--------------+
//     16 |                            |          32 |              |
//        +----------------------------+   rows of a |              |
//     16 + 128 = 144 values                         +--------------+
//                                                   32 + 64 = 96 values
//
// The rule of the register tile holds: the squarer, the less to read. The 8 warps of the block form 4 x 2.
//
// Saves: in wavefronts per k and warp, 2 x (2 of a, broadcast, + 4 of b) = 12 become 2 x (2 + 2) = 8: the two quarters
// of a half-warp read the same words of b and pass together. The multiply-adds of that k take 16 clocks of an SM.
// Others: 84.8% -> 93.7% of cuBLAS.
//
// Limit: the multiply-add pipes, at last. The rest is scheduling (which only SASS can do better), the edges of the
// matrix, and choosing tiles for small ones.

namespace weft::kernels::cuda::matmul_f32_9 {

constexpr int kTileM = 128, kTileN = 128, kTileK = 8, kSide = 8;
constexpr int kWarpM = 32, kWarpN = 64, kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
using Vec4 = Vec<float, 4>;

/// The position of element m in line k of tile_a; runs of 4 stay together.
__device__ int slot(int k, int m) { return m ^ (k / 4 % 2 * 16); }

__global__ void __launch_bounds__(kThreads)
    matmul_kernel(float* y, const float* a, const float* b, int /*M*/, int N, int K) {
  __shared__ __align__(16) float tile_a[2][kTileK][kTileM], tile_b[2][kTileK][kTileN];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32, lane = thread % 32;
  const int row = warp / (kTileN / kWarpN) * kWarpM + lane / 8 * 4;     // and 16 further
  const int column = warp % (kTileN / kWarpN) * kWarpN + lane % 8 * 4;  // and 32 further
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;
  const int a_m = thread / (kTileK / 4), a_k = thread % (kTileK / 4) * 4;
  const int b_k = thread / (kTileN / 4), b_n = thread % (kTileN / 4) * 4;
  float sum[kSide][kSide] = {};
  Vec4 from_a = Vec4::load(a + (first_m + a_m) * K + a_k);
  Vec4 from_b = Vec4::load(b + b_k * N + first_n + b_n);
  int buffer = 0;
  for (int k0 = 0; k0 < K; k0 += kTileK, buffer ^= 1) {
    WEFT_UNROLL
    for (int e = 0; e < 4; ++e) tile_a[buffer][a_k + e][slot(a_k, a_m)] = from_a[e];
    from_b.store(&tile_b[buffer][b_k][b_n]);
    __syncthreads();
    if (k0 + kTileK < K) {
      from_a = Vec4::load(a + (first_m + a_m) * K + k0 + kTileK + a_k);
      from_b = Vec4::load(b + (k0 + kTileK + b_k) * N + first_n + b_n);
    }
    for (int k = 0; k < kTileK; ++k) {
      Vec4 x[2], w[2];
      WEFT_UNROLL
      for (int half = 0; half < 2; ++half) {
        x[half] = Vec4::load(&tile_a[buffer][k][slot(k, row + half * 16)]);
        w[half] = Vec4::load(&tile_b[buffer][k][column + half * 32]);
      }
      WEFT_UNROLL
      for (int i = 0; i < kSide; ++i) WEFT_UNROLL
      for (int j = 0; j < kSide; ++j) sum[i][j] += x[i / 4][i % 4] * w[j / 4][j % 4];
    }
  }
  WEFT_UNROLL
  for (int i = 0; i < kSide; ++i) WEFT_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float* s = sum[i] + half * 4;
    Vec4{{s[0], s[1], s[2], s[3]}}.store(y + (first_m + row + i / 4 * 16 + i % 4) * N + first_n + column + half * 32);
  }
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/9_warp_tile", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_f32/9_warp_tile", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_f32/9_warp_tile", "a warp is 4 x 8 threads: it reads 96 values, not 144",
                     Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_f32_9
