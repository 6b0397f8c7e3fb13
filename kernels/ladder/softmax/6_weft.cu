// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/softmax.h"
#include "kernels/ladder/ladder.cuh"

// 6. Weft: kernels/cuda/softmax.cu, for rows of any length, f32, bf16, f16 and f64, softmax and its logarithm.
//
// A warp takes a row, a block of 256 threads one that is longer than a warp can hold; whole vectors where the rows are
// aligned, single elements otherwise.
//
// Predicted: 85% of the bandwidth or more for rows of 128 bytes and more.

namespace weft::kernels::cuda::softmax_6 {

void run(const Queue& queue, const View& y, const View& x) { softmax_forward(queue, y, x, false); }

const Rung<run> rung("softmax/6_weft", "Weft's kernel: any row, any floating dtype");

}  // namespace weft::kernels::cuda::softmax_6
