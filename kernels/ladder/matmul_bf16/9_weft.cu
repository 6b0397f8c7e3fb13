// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"
#include "kernels/matmul.h"

// 9. Weft: the framework's own product.
//
// sm_80's main loop is kernels/cuda/gemm_mma.cuh: step 6 with any size (cp.async fills what lies outside with zeros),
// either operand transposed, batches, K shared out over blocks where the output is small, bias, accumulation, f32
// output, convolutions.
//
// On sm_90a step 8 goes on: persistent blocks that fetch the next tile while this one is written, an order of tiles
// that keeps their operands in L2, clusters whose blocks share what TMA loads, stores through shared memory. Others'
// gains for these, on an H100: 631 -> 660 (persistent, order) -> 704 (barriers by PTX) -> 734 (clusters) -> 763 TFLOP/s
// (stores, Hilbert order), where cuBLAS has 716 (github.com/pranjalssh/fast.cu and its worklog).
//
// Predicted: on an A100 60 to 70% of the peak of 312 TFLOP/s (the best cuBLAS products measured there reach 271:
// stas00, ml-engineering); on an H100 the bar is 80% of 989.

namespace weft::kernels::WEFT_DEVICE::matmul_bf16_9 {

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<bf16> p("matmul_bf16/9_weft", y, a, b);
  matmul(queue, View::dense(p.y, y.dtype, {1, p.M, p.N}), View::dense(a.data, a.dtype, {1, p.M, p.K}),
         View::dense(b.data, b.dtype, {1, p.K, p.N}), View::none(), {});
}

const Rung<run> rung("matmul_bf16/9_weft", "Weft's kernel: any size, transposes, batches, epilogues");

}  // namespace weft::kernels::WEFT_DEVICE::matmul_bf16_9
