// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/reduce.h"
#include "kernels/ladder/ladder.cuh"

// 7. Weft: kernels/cuda/reduce.cu, for any dimensions, strides, dtypes and operations.
//
//   x[N,H,W,C] -> y[1,1,1,C]     dimensions are sorted by stride and merged. Then one of four shapes of the same idea:
//                                a thread, 8 rows of 32 columns, a warp, or a block per result
//
// Two stages, as in step 6: when there are few results, the length is split over about 512 blocks whatever the
// GPU, and a second launch adds their sums in order. No atomics: the same bits on every device and in every run, which
// atomicAdd, though it would save the second launch, cannot give.
//
// Predicted: 85% of the bandwidth or more for large tensors.

namespace weft::kernels::cuda::reduce_7 {

void run(const Queue& queue, const View& y, const View& x) { reduce(queue, Reduce::sum, y, x); }

const Rung<run> rung("reduce/7_weft", "Weft's kernel: any dimensions and strides, two stages, same bits always");

}  // namespace weft::kernels::cuda::reduce_7
