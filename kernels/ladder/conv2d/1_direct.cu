// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/conv2d/conv2d.cuh"

// 1. Direct: one thread per element of y, seven letters and three loops.
//
//     x, one image             f, filter o           y
//     . . . . . .                                      . . . . . .
//     . a b c . .               R x R x C              . . . . . .       y[e] = a f[0,0] + b f[0,1] + … over all C
//     channels; . d e f . .        *                     =       . . y . . .       what lies outside of the image
//     counts as 0 . g h i . .                                      . . . . . .
//
// Neighbours in a warp are neighbours in o: they share the pixel (x is a broadcast: 1 sector) and have different
// filters, which lie R R C elements apart: 32 sectors of each 2 of 32 bytes used.
//
// Cost: 33 sectors per 32 multiply-adds, on the ordinary pipes. A 3 x 3 layer with 64 channels reads each x[n,h,w,c] 9
// x 64 times.
//
// Limit: memory transactions; and nothing is reused on purpose.

namespace weft::kernels::cuda::conv2d_1 {

constexpr int kThreads = 128;

__global__ void conv2d_kernel(bf16* y, const bf16* x, const bf16* f, int H, int W, int C, int O, int R, int pixels) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), pixel = i / O, o = i % O;
  if (pixel >= pixels) return;
  const int n = pixel / (H * W), h = pixel / W % H, w = pixel % W;
  float sum = 0;
  for (int r = 0; r < R; ++r) {
    for (int s = 0; s < R; ++s) {
      const int from_h = h + r - R / 2, from_w = w + s - R / 2;
      if (from_h < 0 || from_h >= H || from_w < 0 || from_w >= W) continue;
      for (int c = 0; c < C; ++c)
        sum += from<float>(x[((n * H + from_h) * W + from_w) * C + c]) * from<float>(f[((o * R + r) * R + s) * C + c]);
    }
  }
  y[i] = to<bf16>(sum);
}

void run(const Queue& queue, const View& y, const View& x, const View& f) {
  const Conv2d p("conv2d/1_direct", y, x, f);
  launch(queue, "conv2d/1_direct", dim3(tiles(int64_t{p.pixels} * p.O, kThreads)), dim3(kThreads), 0, conv2d_kernel,
         p.y, p.x, p.f, p.H, p.W, p.C, p.O, p.R, p.pixels);
}

const Rung<run> rung("conv2d/1_direct", "one thread per element, the plain sum");

}  // namespace weft::kernels::cuda::conv2d_1
