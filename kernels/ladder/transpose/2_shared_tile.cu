// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/transpose/transpose.cuh"

// 2. Shared tile: turn a square of 32 x 32 inside the SM, where scattered access is cheap.
//
//       x              shared            y
//      +----+          +----+           +----+
//      |tile|  rows    |tile|  columns  |turn|      a warp writes a row of y, which it reads as a
//      +----+  ----->  +----+  ------>  +----+      column of the tile: another thread's element,
//       4 sectors                       4 sectors   hence the barrier
//
// Saves: 32 sectors written per warp become 4. Predicted: 36 / 8 = 4.5 times. Others: 12.8 -> 51.3 GB/s, 4.0 times
// (Harris).
//
// Limit: bank conflicts, the worst there are. A row of the tile is 32 words, as many as there are banks; so all 32
// elements of a column lie in the same bank, and lanes read in sequence: 32 wavefronts instead of 1.

namespace weft::kernels::cuda::transpose_2 {

constexpr int kTile = 32;

__global__ void transpose_kernel(float* y, const float* x, int M, int N) {
  __shared__ float tile[kTile][kTile];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int first_m = static_cast<int>(blockIdx.y) * kTile, first_n = static_cast<int>(blockIdx.x) * kTile;
  if (first_m + ty < M && first_n + tx < N) tile[ty][tx] = x[(first_m + ty) * N + first_n + tx];
  __syncthreads();
  if (first_n + ty < N && first_m + tx < M) y[(first_n + ty) * M + first_m + tx] = tile[tx][ty];
}

void run(const Queue& queue, const View& y, const View& x) {
  const Transpose p("transpose/2_shared_tile", y, x);
  launch(queue, "transpose/2_shared_tile", dim3(tiles(p.N, kTile), tiles(p.M, kTile)), dim3(kTile, kTile), 0,
         transpose_kernel, p.y, p.x, p.M, p.N);
}

const Rung<run> rung("transpose/2_shared_tile", "turn a tile in shared memory: whole sectors both ways");

}  // namespace weft::kernels::cuda::transpose_2
