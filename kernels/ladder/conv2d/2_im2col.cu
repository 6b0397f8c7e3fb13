// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/conv2d/conv2d.cuh"
#include "kernels/runtime/allocator.h"

// 2. im2col: write every pixel's neighbourhood into a row, then multiply matrices.
//
//     columns [pixels, R R C]                    f [O, R R C]                  y [pixels, O]
//     row of pixel e:  a a a b b b c c c d d …    filter 0: …                  y[p,o] = columns[p,:] · f[o,:]
//     row of pixel f:  b b b c c c . . . e e …    filter 1: …
//
// The product is ladder matmul_f32's third step in bf16. Its tiles of 32 x 32 in shared memory have a word of padding
// here, since both operands lie along k: see transpose. Any fast product could replace it: so this step is found in
// many frameworks.
//
// Saves: 33 sectors per 32 multiply-adds become 4 per 32 x 32. Predicted: the speed of that product.
// Costs: the buffer. 3 x 3: 9 times the image is written and read again. Batch 256, 56 x 56 x 64: 925 MB each way, 0.55
// ms at 3.35 TB/s. x and y are 103 MB each, and a tensor core product of that size (59 GFLOP) takes 0.075 ms at 790
// TFLOP/s.
//
// Limit: on these pipes the product; with tensor cores it would be the buffer.

namespace weft::kernels::cuda::conv2d_2 {

constexpr int kTile = 32, kThreads = 128;

__global__ void im2col_kernel(bf16* columns, const bf16* x, int H, int W, int C, int R, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int pixel = static_cast<int>(i / (R * R * C)), k = static_cast<int>(i % (R * R * C));
  const int c = k % C, s = k / C % R, r = k / C / R;
  const int h = pixel / W % H + r - R / 2, w = pixel % W + s - R / 2;
  const bool inside = h >= 0 && h < H && w >= 0 && w < W;
  const bf16 value = inside ? x[((pixel / (H * W) * H + h) * W + w) * C + c] : to<bf16>(0.0f);
  columns[i] = value;
}

__global__ void product_kernel(bf16* y, const bf16* columns, const bf16* f, int pixels, int O, int K) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile + 1];
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const int pixel = static_cast<int>(blockIdx.y) * kTile + row, first_o = static_cast<int>(blockIdx.x) * kTile;
  float sum = 0;
  for (int k0 = 0; k0 < K; k0 += kTile) {
    const int k = k0 + column;
    tile_a[row][column] = pixel < pixels && k < K ? from<float>(columns[static_cast<int64_t>(pixel) * K + k]) : 0;
    tile_b[row][column] = first_o + row < O && k < K ? from<float>(f[(first_o + row) * K + k]) : 0;
    __syncthreads();
    for (int d = 0; d < kTile; ++d) sum += tile_a[row][d] * tile_b[column][d];
    __syncthreads();
  }
  if (pixel < pixels && first_o + column < O) y[pixel * O + first_o + column] = to<bf16>(sum);
}

void run(const Queue& queue, const View& y, const View& x, const View& f) {
  const Conv2d p("conv2d/2_im2col", y, x, f);
  const int64_t count = int64_t{p.pixels} * p.K;
  const Workspace columns(queue, static_cast<size_t>(count) * sizeof(bf16), "conv2d/2_im2col");
  launch(queue, "conv2d/2_im2col (columns)", dim3(tiles(count, kThreads)), dim3(kThreads), 0, im2col_kernel,
         columns.as<bf16>(), p.x, p.H, p.W, p.C, p.R, count);
  launch(queue, "conv2d/2_im2col (product)", dim3(tiles(p.O, kTile), tiles(p.pixels, kTile)), dim3(kTile, kTile), 0,
         product_kernel, p.y, static_cast<const bf16*>(columns.as<bf16>()), p.f, p.pixels, p.O, p.K);
}

const Rung<run> rung("conv2d/2_im2col", "neighbourhoods into rows, then a product of matrices");

}  // namespace weft::kernels::cuda::conv2d_2
