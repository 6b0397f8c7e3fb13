// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/queue.h"

namespace weft::kernels::WEFT_DEVICE {

/// One warp; row r of `out` (32 ints) is what each lane got from the r-th collective on `in` (32 ints). 26 rows.
inline constexpr int kCollectiveRows = 26;
void collectives(const Queue& queue, int* out, const int* in);
/// The two halves of each warp shuffle on their own, in different iterations of a loop. out[i] = sum over the half
/// warp.
void half_warps(const Queue& queue, float* out, const float* in, unsigned threads);
/// y[b] = sum, y[blocks + b] = max of n elements per block, and the counts of __syncthreads_count/and/or.
void block_reductions(const Queue& queue, double* sums, float* maxima, int* votes, const float* x, int n,
                      unsigned blocks, unsigned threads);

}  // namespace weft::kernels::WEFT_DEVICE
