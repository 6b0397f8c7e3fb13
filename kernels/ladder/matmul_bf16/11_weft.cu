// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/matmul.h"
#include "kernels/ladder/matmul.cuh"

// 11. Weft: the framework's own product.
//
// sm_80's main loop is kernels/cuda/gemm/gemm_mma.cuh: step 6 with any size (cp.async zero-fills beyond edges), tiles
// of 128 x 256, two register sets of fragments, either operand transposed. Also batches, split-K
// where the output is small, bias, accumulation, f32 output, convolutions.
//
// sm_90a's is kernels/cuda/gemm/gemm_wgmma.cuh: step 10 with all of that, tiles and clusters chosen by the sizes
// (wgmma_plan.h). The wgmmas of a step are issued while the previous step's still run. Stores pass through shared
// memory: stmatrix, then TMA, 128 bytes a line. Others' gains for these, on an H100: 660 -> 704 (barriers by PTX) for
// the second, 734 -> 763 TFLOP/s (stores, Hilbert order) for the last; cuBLAS has 716 (github.com/pranjalssh/fast.cu
// and its worklog).
//
// Predicted: on an A100 82% of the peak of 312 TFLOP/s at 8192 by the model of time (cuBLAS at best 271: stas00,
// ml-engineering); on an H100 the bar is 80% of 989.

namespace weft::kernels::cuda::matmul_bf16_11 {

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<bf16> p("matmul_bf16/11_weft", y, a, b);
  matmul(queue, View::dense(p.y, y.dtype, {1, p.M, p.N}), View::dense(a.data, a.dtype, {1, p.M, p.K}),
         View::dense(b.data, b.dtype, {1, p.K, p.N}), View::none(), {});
}

const Rung<run> rung("matmul_bf16/11_weft", "Weft's kernel: any size, transposes, batches, epilogues");

}  // namespace weft::kernels::cuda::matmul_bf16_11
