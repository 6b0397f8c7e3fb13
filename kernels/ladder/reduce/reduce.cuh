// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "kernels/ladder/ladder.cuh"
#include "kernels/runtime/allocator.h"

namespace weft::kernels::cuda::inline rungs {

inline constexpr int kReduceThreads = 256;

/// y[0] = the sum of x: runs `kernel<<<blocks, 256>>>(out, in, n)`, where each block leaves a sum, repeatedly until a
/// single sum remains. `per_block`: the elements that a block adds; `most_blocks` > 0: no more blocks than these, which
/// then go over the input in strides of the grid.
inline void reduce_in_rounds(const Queue& queue, const char* name, const View& y, const View& x, int64_t per_block,
                             void (*kernel)(float*, const float*, int64_t), int64_t most_blocks = 0) {
  WEFT_CHECK(x.rank == 1 && x.sizes[0] > 0 && x.strides[0] == 1 && y.numel() == 1, name,
             ": expected a dense vector of at least one element and one result, got ", x, " and ", y);
  const float* in = x.as<float>();
  std::unique_ptr<Workspace> sums;
  for (int64_t n = x.numel();;) {
    int64_t blocks = (n + per_block - 1) / per_block;
    if (most_blocks > 0 && blocks > most_blocks) blocks = most_blocks;
    auto next = std::make_unique<Workspace>(queue, static_cast<size_t>(blocks) * sizeof(float), name);
    launch(queue, name, dim3(static_cast<unsigned>(blocks)), dim3(kReduceThreads), 0, kernel,
           blocks == 1 ? y.as<float>() : next->as<float>(), in, n);
    if (blocks == 1) return;
    sums = std::move(next);
    in = sums->as<float>();
    n = blocks;
  }
}

}  // namespace weft::kernels::cuda::inline rungs
