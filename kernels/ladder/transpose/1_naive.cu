// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/transpose/transpose.cuh"

// 1. Naive: one thread per element; y[n,m] = x[m,n].
//
//       x                         y
//       x x x x x x x x           x . . .       a warp reads 32 neighbours: 4 sectors of 32 bytes,
//       . . . . . . . .           x . . .       and writes them into 32 rows: 32 sectors, of each 4 bytes
//       . . . . . . . .           x . . .
//
// Reads or writes must be scattered, as long as a thread writes its own element.
//
// Cost: 4 + 32 sectors per warp for 4 + 4 sectors of data. The L2 cache can merge the 4-byte pieces of a sector if they
// are close in time. Then DRAM sees less than that; the way from the SMs to L2 does not. Predicted:
// 8 / 36 = 22% of a copy's rate. Others: 12.8 of 105.6 GB/s, 12% (M. Harris, "An Efficient Matrix Transpose in CUDA
// C/C++", NVIDIA, Tesla M2050).
//
// Limit: scattered stores.

namespace weft::kernels::cuda::transpose_1 {

constexpr int kBlock = 32;

__global__ void transpose_kernel(float* y, const float* x, int M, int N) {
  const int m = static_cast<int>(blockIdx.y * kBlock + threadIdx.y);
  const int n = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
  if (m < M && n < N) y[n * M + m] = x[m * N + n];
}

void run(const Queue& queue, const View& y, const View& x) {
  const Transpose p("transpose/1_naive", y, x);
  launch(queue, "transpose/1_naive", dim3(tiles(p.N, kBlock), tiles(p.M, kBlock)), dim3(kBlock, kBlock), 0,
         transpose_kernel, p.y, p.x, p.M, p.N);
}

const Rung<run> rung("transpose/1_naive", "one thread per element: reads rows, writes columns");

}  // namespace weft::kernels::cuda::transpose_1
