// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"
#include "kernels/matmul.h"

// 7. Weft: the framework's own product.
//
// sm_80's main loop is kernels/cuda/gemm_mma.cuh: step 6 with any size (cp.async fills what lies outside with zeros),
// either operand transposed, batches, K shared out over blocks where the output is small, bias, accumulation, f32
// output, convolutions.
//
// Predicted: on an A100 60 to 70% of the peak of 312 TFLOP/s (the best cuBLAS products measured there reach 271:
// stas00, ml-engineering); on an H100 the tensor cores need wgmma, fed by TMA.

namespace weft::kernels::WEFT_DEVICE::matmul_bf16_7 {

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<bf16> p("matmul_bf16/7_weft", y, a, b);
  matmul(queue, View::dense(p.y, y.dtype, {1, p.M, p.N}), View::dense(a.data, a.dtype, {1, p.M, p.K}),
         View::dense(b.data, b.dtype, {1, p.K, p.N}), View::none(), {});
}

const Rung<run> rung("matmul_bf16/7_weft", "Weft's kernel: any size, transposes, batches, epilogues");

}  // namespace weft::kernels::WEFT_DEVICE::matmul_bf16_7
