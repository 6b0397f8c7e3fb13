// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/transpose/transpose.cuh"

// 3. Padded: one unused word at the end of each row of the tile.
//
//     bank of tile[row][column], rows of 32 words          rows of 33 words
//        0  1  2  3 …                                         0  1  2  3 …
//        0  1  2  3 …                                         1  2  3  4 …
//        0  1  2  3 …                                         2  3  4  5 …
//     a column: one bank, 32 deep                          a column: 32 banks
//
// Saves: 31 of the 32 wavefronts of each column; costs 128 bytes. Predicted: shared memory is off the list: the SM
// moved 2 x 4 sectors per warp in 33 wavefronts, now in 2. Others: 51.3 -> 99.5 GB/s, 94% of a copy (Harris).
//
// Limit: on today's GPUs, too little work per thread: a load, a barrier, and a store of 4 bytes.

namespace weft::kernels::cuda::transpose_3 {

constexpr int kTile = 32;

__global__ void transpose_kernel(float* y, const float* x, int M, int N) {
  __shared__ float tile[kTile][kTile + 1];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int first_m = static_cast<int>(blockIdx.y) * kTile, first_n = static_cast<int>(blockIdx.x) * kTile;
  if (first_m + ty < M && first_n + tx < N) tile[ty][tx] = x[(first_m + ty) * N + first_n + tx];
  __syncthreads();
  if (first_n + ty < N && first_m + tx < M) y[(first_n + ty) * M + first_m + tx] = tile[tx][ty];
}

void run(const Queue& queue, const View& y, const View& x) {
  const Transpose p("transpose/3_padded", y, x);
  launch(queue, "transpose/3_padded", dim3(tiles(p.N, kTile), tiles(p.M, kTile)), dim3(kTile, kTile), 0,
         transpose_kernel, p.y, p.x, p.M, p.N);
}

const Rung<run> rung("transpose/3_padded", "one word of padding: a column lies in 32 banks");

}  // namespace weft::kernels::cuda::transpose_3
