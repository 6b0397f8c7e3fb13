// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 5. cp.async, several stages deep: copies that bypass registers, awaited only when they are needed.
//
//   cp.async moves 16 bytes from global to shared memory in the background. A thread closes a group of copies (commit)
//   and later waits until at most n groups are under way (wait_group n).
//
//     stage      0       1       2       3                4 tiles of each operand in a ring; 3 steps of k are always
//     step 0   [use 0][load 1][load 2][load 3]            under way while one is used
//     step 1   [load 4][use 1][load 2][load 3]            wait until at most 2 groups are left -> tile 1 is here
//     step 2   [load 4][load 5][use 2][load 3]            barrier -> it is here for all, and all are done with tile 0
//
// One barrier per step does both: it publishes the copies of all threads, and frees the stage read in the step before.
//
// Saves: the wait, the registers and the store instructions between ld and st. Latency x bandwidth: an SM's share of an
// A100's memory is 1555 GB/s / 108 = 14 bytes per ns. To hide 600 ns 8.6 KB must be in flight; 3 stages x 8 KiB are,
// and several blocks share an SM. Predicted: 2 to 3 times; from here the tensor cores decide.
//
// Limit: a warp tile of 32 x 32 reads 16 wavefronts per 8 mma: shared memory is exactly as busy as an A100's tensor
// cores, and twice as busy as an H100's.

namespace weft::kernels::cuda::matmul_bf16_5 {

constexpr int kTileM = 64, kTileN = 64, kTileK = 32, kWarpM = 32, kWarpN = 32, kStages = 4;
constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32, kRunsA = kTileK / 8, kRunsB = kTileN / 8;
constexpr int kStage = kTileK * (kTileM + kTileN);  // elements

/// Offset in elements of run `run` (8 elements, 16 bytes) of a row in its tile.
__device__ int offset_a(int row, int run) { return (row * kRunsA + (run ^ (row / 2 % 4))) * 8; }
__device__ int offset_b(int row, int run) { return (row * kRunsB + (run ^ row % 8)) * 8; }

__global__ void __launch_bounds__(kThreads)
    matmul_kernel(bf16* y, const bf16* a, const bf16* b, int /*M*/, int N, int K) {
  bf16* const ring = dynamic_shared<bf16>();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / (kTileN / kWarpN) * kWarpM, column = warp % (kTileN / kWarpN) * kWarpN;
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;

  // Steps beyond the last are empty groups, so that the count of groups stays the count of steps.
  const auto load = [&](int step) {
    bf16* const tile_a = ring + step % kStages * kStage;
    bf16* const tile_b = tile_a + kTileM * kTileK;
    const int k0 = step * kTileK;
    for (int i = thread; k0 < K && i < kTileM * kRunsA; i += kThreads)
      ptx::cp_async<16>(tile_a + offset_a(i / kRunsA, i % kRunsA),
                        a + (first_m + i / kRunsA) * K + k0 + i % kRunsA * 8);
    for (int i = thread; k0 < K && i < kTileK * kRunsB; i += kThreads)
      ptx::cp_async<16>(tile_b + offset_b(i / kRunsB, i % kRunsB),
                        b + (k0 + i / kRunsB) * N + first_n + i % kRunsB * 8);
    ptx::cp_async_commit();
  };

  float sum[kWarpM / 16][kWarpN / 8][4] = {};
  for (int step = 0; step < kStages - 1; ++step) load(step);
  for (int step = 0; step < K / kTileK; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncthreads();
    load(step + kStages - 1);
    const bf16* const tile_a = ring + step % kStages * kStage;
    const bf16* const tile_b = tile_a + kTileM * kTileK;
    WEFT_UNROLL
    for (int k = 0; k < kTileK; k += 16) {
      uint32_t x[kWarpM / 16][4], w[kWarpN / 16][4];
      WEFT_UNROLL
      for (int p = 0; p < kWarpM / 16; ++p)
        ptx::ldmatrix_x4(x[p], tile_a + offset_a(row + p * 16 + lane % 16, k / 8 + lane / 16));
      WEFT_UNROLL
      for (int q = 0; q < kWarpN / 16; ++q)
        ptx::ldmatrix_x4_trans(w[q], tile_b + offset_b(k + lane % 16, (column + q * 16) / 8 + lane / 16));
      WEFT_UNROLL
      for (int p = 0; p < kWarpM / 16; ++p) WEFT_UNROLL
      for (int q = 0; q < kWarpN / 8; ++q)
        ptx::mma_m16n8k16<bf16>(sum[p][q], x[p], {w[q / 2][q % 2 * 2], w[q / 2][q % 2 * 2 + 1]});
    }
  }

  bf16* const to = y + (first_m + row + lane / 4) * N + first_n + column + lane % 4 * 2;
  WEFT_UNROLL
  for (int p = 0; p < kWarpM / 16; ++p) WEFT_UNROLL
  for (int q = 0; q < kWarpN / 8; ++q) WEFT_UNROLL
  for (int half = 0; half < 2; ++half)
    *reinterpret_cast<uint32_t*>(to + (p * 16 + half * 8) * N + q * 8) =
        ptx::pack<bf16>(sum[p][q][half * 2], sum[p][q][half * 2 + 1]);
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<bf16> p("matmul_bf16/5_cp_async", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_bf16/5_cp_async", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads),
         kStages * kStage * sizeof(bf16), matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/5_cp_async", "a ring of 4 stages: 3 steps of k are always under way",
                     Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_bf16_5
