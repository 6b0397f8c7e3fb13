// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 3. Shared tile: 32 threads use each loaded element.
//
// A block goes along K in steps of 32. In each step its 1024 threads load an element of a and of b into shared memory
// (some 30 clocks away instead of some 500). They synchronise, and multiply from there:
//
//                     b  +----+
//                        |tile|  32 x 32, loaded once by the block,
//                        +----+  read by all 32 rows of threads
//                     …
//     a  +----+ …        +----+
//        |tile| --->     | y  |  a thread still owns one element
//        +----+          +----+
//
// Why two barriers: no thread may read a tile before all have written, nor write the next tile before all have
// read.
//
// Saves: per 32 steps of k a warp loads 4 + 4 sectors instead of 32 x 5: 20 times less from global memory. Predicted
// gain: far less, as shared memory is now the limit: each multiply-add of a warp reads 2 wavefronts (a broadcast from
// a, and one from b). An SM serves 1 a clock, but could do 4 multiply-adds: 1 / 8 = 12.5% of the peak.
// Others: 12.8% of cuBLAS.
//
// Limit: shared memory reads per multiply-add. A thread must do more per read.

namespace weft::kernels::cuda::matmul_f32_3 {

constexpr int kTile = 32;

__global__ void matmul_kernel(float* y, const float* a, const float* b, int M, int N, int K) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const int m = static_cast<int>(blockIdx.y) * kTile + row, n = static_cast<int>(blockIdx.x) * kTile + column;
  float sum = 0;
  for (int k0 = 0; k0 < K; k0 += kTile) {
    tile_a[row][column] = m < M && k0 + column < K ? a[m * K + k0 + column] : 0;
    tile_b[row][column] = k0 + row < K && n < N ? b[(k0 + row) * N + n] : 0;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tile_a[row][k] * tile_b[k][column];
    __syncthreads();
  }
  if (m < M && n < N) y[m * N + n] = sum;
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/3_shared_tile", y, a, b);
  launch(queue, "matmul_f32/3_shared_tile", dim3(tiles(p.N, kTile), tiles(p.M, kTile)), dim3(kTile, kTile), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_f32/3_shared_tile", "a block loads a tile once, all its threads use it");

}  // namespace weft::kernels::cuda::matmul_f32_3
