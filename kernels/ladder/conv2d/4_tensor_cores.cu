// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/conv2d/conv2d.cuh"

// 4. Tensor cores: the main loop of ladder matmul_bf16's fifth step (a ring of cp.async stages, swizzled, ldmatrix,
// mma.sync), with pixels for rows.
//
//     64 pixels x 64 filters per block; a step of k is 32 channels of ONE filter tap (r, s)
//
//       step        0        1        2        3 …           C = 64: two steps per tap
//       tap       (0,0)    (0,0)    (0,1)    (0,1)
//       channels   0-31    32-63     0-31    32-63
//
// Within a step the taps do not change: a row of the tile is 64 bytes in a row of x, shifted by (r - R/2, s - R/2)
// pixels; outside of x, zeros. cp.async knows zeros: with a source size of 0 it reads nothing and fills the
// 16 bytes. The filters lie along k as mma wants its second operand, so ldmatrix need not turn them.
//
// Saves: as in matmul_bf16: the ordinary pipes for the tensor cores, scalar reads for ldmatrix, waits for stages.
// Predicted: the same share of the peak as a product of [pixels, R R C] x [R R C, O], less the zeros at the edges: 5%
// of a 56 x 56 image's taps lie outside, and are multiplied all the same. Others: no solid published share of cuDNN
// for a hand-written kernel was found; the bar is set by measuring.
//
// Limit: the tile (see matmul_bf16/6_large_tiles), and for layers with many pixels and few channels, memory.

namespace weft::kernels::cuda::conv2d_4 {

constexpr int kTileM = 64, kTileN = 64, kTileK = 32, kWarpM = 32, kWarpN = 32, kStages = 4;
constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32, kRuns = kTileK / 8;
constexpr int kStage = kTileK * (kTileM + kTileN);  // elements

/// Offset in elements of run `run` (8 elements, 16 bytes) of a row in its tile.
__device__ int run_offset(int row, int run) { return (row * kRuns + (run ^ (row / 2 % 4))) * 8; }

__global__ void __launch_bounds__(kThreads)
    conv2d_kernel(bf16* y, const bf16* x, const bf16* f, int H, int W, int C, int O, int R, int pixels, int K) {
  bf16* const ring = dynamic_shared<bf16>();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / (kTileN / kWarpN) * kWarpM, column = warp % (kTileN / kWarpN) * kWarpN;
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;

  // Steps beyond the last are empty groups, so that the count of groups stays the count of steps.
  const auto load = [&](int step) {
    bf16* const tile_a = ring + step % kStages * kStage;
    bf16* const tile_b = tile_a + kTileM * kTileK;
    const int k0 = step * kTileK, tap = k0 / C, c = k0 % C;
    for (int i = thread; k0 < K && i < kTileM * kRuns; i += kThreads) {
      const int pixel = first_m + i / kRuns, h = pixel / W % H + tap / R - R / 2, w = pixel % W + tap % R - R / 2;
      const bool inside = pixel < pixels && h >= 0 && h < H && w >= 0 && w < W;
      const int from = ((pixel / (H * W) * H + h) * W + w) * C + c + i % kRuns * 8;
      ptx::cp_async_zfill<16>(tile_a + run_offset(i / kRuns, i % kRuns), inside ? x + from : x, inside ? 16 : 0);
    }
    for (int i = thread; k0 < K && i < kTileN * kRuns; i += kThreads)
      ptx::cp_async<16>(tile_b + run_offset(i / kRuns, i % kRuns), f + (first_n + i / kRuns) * K + k0 + i % kRuns * 8);
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
      uint32_t a[kWarpM / 16][4], b[kWarpN / 16][4];
      WEFT_UNROLL
      for (int p = 0; p < kWarpM / 16; ++p)
        ptx::ldmatrix_x4(a[p], tile_a + run_offset(row + p * 16 + lane % 16, k / 8 + lane / 16));
      WEFT_UNROLL
      for (int q = 0; q < kWarpN / 16; ++q)
        ptx::ldmatrix_x4(b[q], tile_b + run_offset(column + q * 16 + lane / 16 * 8 + lane % 8, k / 8 + lane / 8 % 2));
      WEFT_UNROLL
      for (int p = 0; p < kWarpM / 16; ++p) WEFT_UNROLL
      for (int q = 0; q < kWarpN / 8; ++q)
        ptx::mma_m16n8k16<bf16>(sum[p][q], a[p], {b[q / 2][q % 2 * 2], b[q / 2][q % 2 * 2 + 1]});
    }
  }

  WEFT_UNROLL
  for (int p = 0; p < kWarpM / 16; ++p) WEFT_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int pixel = first_m + row + p * 16 + half * 8 + lane / 4;
    bf16* const to = y + pixel * O + first_n + column + lane % 4 * 2;
    if (pixel >= pixels) continue;
    WEFT_UNROLL
    for (int q = 0; q < kWarpN / 8; ++q)
      *reinterpret_cast<uint32_t*>(to + q * 8) = ptx::pack<bf16>(sum[p][q][half * 2], sum[p][q][half * 2 + 1]);
  }
}

void run(const Queue& queue, const View& y, const View& x, const View& f) {
  const Conv2d p("conv2d/4_tensor_cores", y, x, f, kTileK, kTileN);
  launch(queue, "conv2d/4_tensor_cores", dim3(tiles(p.O, kTileN), tiles(p.pixels, kTileM)), dim3(kThreads),
         kStages * kStage * sizeof(bf16), conv2d_kernel, p.y, p.x, p.f, p.H, p.W, p.C, p.O, p.R, p.pixels, p.K);
}

const Rung<run> rung("conv2d/4_tensor_cores", "matmul_bf16's ring of stages, with pixels for rows", Sizes::multiples);

}  // namespace weft::kernels::cuda::conv2d_4
