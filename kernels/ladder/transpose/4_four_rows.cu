// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/transpose/transpose.cuh"

// 4. Four rows per thread: a block of 32 x 8 threads turns the tile of 32 x 32.
//
//      tile    thread row 0 takes tile rows 0, 8, 16, 24
//      +----+  thread row 1 takes tile rows 1, 9, 17, 25       4 loads are issued one after the other, before
//      |    |  …                                                any of them is needed: one wait for 4 loads
//      +----+
//
// Saves: three of four waits, and three of four threads' index arithmetic; an SM of 2048 threads holds 8 tiles at a
// time instead of 2, so more bytes are under way (Little's law: bytes under way = latency x bandwidth, 2 MB for an
// H100). Predicted: what latency took in step 3; the counts stay the same, all of them.
//
// Limit: 4 bytes per instruction: 2 x 32 load and store instructions of a warp for a tile of 4 KiB.

namespace weft::kernels::cuda::transpose_4 {

constexpr int kTile = 32, kRows = 8;

__global__ void transpose_kernel(float* y, const float* x, int M, int N) {
  __shared__ float tile[kTile][kTile + 1];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int first_m = static_cast<int>(blockIdx.y) * kTile, first_n = static_cast<int>(blockIdx.x) * kTile;
  WEFT_UNROLL
  for (int i = 0; i < kTile / kRows; ++i) {
    const int r = ty + i * kRows;
    if (first_m + r < M && first_n + tx < N) tile[r][tx] = x[(first_m + r) * N + first_n + tx];
  }
  __syncthreads();
  WEFT_UNROLL
  for (int i = 0; i < kTile / kRows; ++i) {
    const int r = ty + i * kRows;
    if (first_n + r < N && first_m + tx < M) y[(first_n + r) * M + first_m + tx] = tile[tx][r];
  }
}

void run(const Queue& queue, const View& y, const View& x) {
  const Transpose p("transpose/4_four_rows", y, x);
  launch(queue, "transpose/4_four_rows", dim3(tiles(p.N, kTile), tiles(p.M, kTile)), dim3(kTile, kRows), 0,
         transpose_kernel, p.y, p.x, p.M, p.N);
}

const Rung<run> rung("transpose/4_four_rows", "four loads under way per thread");

}  // namespace weft::kernels::cuda::transpose_4
