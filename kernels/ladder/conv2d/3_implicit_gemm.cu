// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/conv2d/conv2d.cuh"

// 3. Implicit GEMM: the same product, but the matrix of neighbourhoods exists only tile by tile, in shared memory.
//
//     columns[pixel, k]  is  x[n, h + r - R/2, w + s - R/2, c]  with k = (r R + s) C + c
//
//     instead of writing the matrix and reading it, a thread that loads element (pixel, k) of a tile computes its
//     address in x. NHWC and the filter's order [O,R,S,C] make that cheap: the channels run along k.
//
// Saves: the buffer with its write and read, 18 times the image for 3 x 3. x is still read 9 times, but from L2:
// neighbouring pixels are neighbouring rows of the same tile. Costs index arithmetic per element; what does not change
// within a tile of k should be worked out once (the next step). Predicted: on these pipes little; the traffic is what
// the counts show.
//
// Limit: multiply-adds on the ordinary pipes, fed with two wavefronts each.

namespace weft::kernels::cuda::conv2d_3 {

constexpr int kTile = 32;

__global__ void conv2d_kernel(bf16* y, const bf16* x, const bf16* f, int H, int W, int C, int O, int R, int pixels,
                              int K) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile + 1];
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const int pixel = static_cast<int>(blockIdx.y) * kTile + row, first_o = static_cast<int>(blockIdx.x) * kTile;
  float sum = 0;
  for (int k0 = 0; k0 < K; k0 += kTile) {
    const int k = k0 + column, c = k % C, s = k / C % R, r = k / C / R;
    const int h = pixel / W % H + r - R / 2, w = pixel % W + s - R / 2;
    const bool inside = pixel < pixels && k < K && h >= 0 && h < H && w >= 0 && w < W;
    tile_a[row][column] = inside ? from<float>(x[((pixel / (H * W) * H + h) * W + w) * C + c]) : 0;
    tile_b[row][column] = first_o + row < O && k < K ? from<float>(f[(first_o + row) * K + k]) : 0;
    __syncthreads();
    for (int d = 0; d < kTile; ++d) sum += tile_a[row][d] * tile_b[column][d];
    __syncthreads();
  }
  if (pixel < pixels && first_o + column < O) y[pixel * O + first_o + column] = to<bf16>(sum);
}

void run(const Queue& queue, const View& y, const View& x, const View& f) {
  const Conv2d p("conv2d/3_implicit_gemm", y, x, f);
  launch(queue, "conv2d/3_implicit_gemm", dim3(tiles(p.O, kTile), tiles(p.pixels, kTile)), dim3(kTile, kTile), 0,
         conv2d_kernel, p.y, p.x, p.f, p.H, p.W, p.C, p.O, p.R, p.pixels, p.K);
}

const Rung<run> rung("conv2d/3_implicit_gemm", "the matrix of neighbourhoods exists only tile by tile");

}  // namespace weft::kernels::cuda::conv2d_3
