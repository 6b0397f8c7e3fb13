// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 8. Double buffer: the next tile travels while this one is used.
//
//   step 0     load 0  store 0 | load 1 ........................ store 1 | load 2 ....
//                              | multiply tile 0                         | multiply tile 1
//                           barrier                                   barrier
//
// Two tiles of each operand. The loads of the next step are issued first and land in registers; no thread waits for
// them until they are stored into the OTHER tile, after the multiplications. After the barrier all threads have
// stored step i + 1 and have read step i - 1, whose buffer step i + 2 will take: one barrier per step instead of
// two.
//
// Saves: the wait. A step of 8 k else costs 500 clocks of latency, and 8 x 64 / 4 x 2 (warps per scheduler) =
// 256 clocks of multiplying. Other blocks may fill the gap; with double buffers the larger of both counts. Others:
// 70.8% -> 74.3% of cuBLAS. Costs 8 registers and twice the shared memory (16 KiB).
//
// cp.async, which copies to shared memory without passing registers, cannot turn a on the way, so f32 goes through
// registers here; ladder matmul_bf16 uses it, where ldmatrix transposes.
//
// Limit: shared memory still feeds the multiply-adds with 12 wavefronts per 16 clocks of work.

namespace weft::kernels::cuda::matmul_f32_8 {

constexpr int kTileM = 128, kTileN = 128, kTileK = 8, kSide = 8;
constexpr int kAcross = kTileN / kSide, kThreads = kTileM / kSide * kAcross;
using Vec4 = Vec<float, 4>;

/// The position of element m in line k of tile_a; runs of 4 stay together.
__device__ int slot(int k, int m) { return m ^ (k / 4 % 2 * 16); }

__global__ void __launch_bounds__(kThreads)
    matmul_kernel(float* y, const float* a, const float* b, int /*M*/, int N, int K) {
  __shared__ __align__(16) float tile_a[2][kTileK][kTileM], tile_b[2][kTileK][kTileN];
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / kAcross * 4, column = thread % kAcross * 4;  // and 64 further
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
        x[half] = Vec4::load(&tile_a[buffer][k][slot(k, row + half * 64)]);
        w[half] = Vec4::load(&tile_b[buffer][k][column + half * 64]);
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
    Vec4{{s[0], s[1], s[2], s[3]}}.store(y + (first_m + row + i / 4 * 64 + i % 4) * N + first_n + column + half * 64);
  }
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/8_double_buffer", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_f32/8_double_buffer", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_f32/8_double_buffer", "the next tile travels while this one is used", Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_f32_8
