// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/matmul.h"
#include "kernels/ladder/matmul.cuh"

// 10. Weft: the same main loop as a part of the framework, kernels/cuda/gemm/gemm_fma.cuh.
//
// Weft's kernel is no faster than step 9 on this ladder's problem, but computes all others: any size (masked edges),
// either operand transposed, batches, split-K when the result is small (added in a fixed order). Also bias,
// accumulation into y, and convolutions, whose rows are pixels. The tile is chosen by the problem:
// 128 x 128 where it fills the GPU, 64 x 64 otherwise; 16 of K at a time.
//
// Predicted: as step 9 on large matrices, ahead of it on small ones. Peak share to expect 70 to 80%: multiply-add
// instructions are all that matters, and every 16 bytes from shared memory cost an issue slot too.

namespace weft::kernels::cuda::matmul_f32_10 {

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/10_weft", y, a, b);
  matmul(queue, View::dense(p.y, y.dtype, {1, p.M, p.N}), View::dense(a.data, a.dtype, {1, p.M, p.K}),
         View::dense(b.data, b.dtype, {1, p.K, p.N}), View::none(), {});
}

const Rung<run> rung("matmul_f32/10_weft", "Weft's kernel: any size, transposes, batches, epilogues");

}  // namespace weft::kernels::cuda::matmul_f32_10
