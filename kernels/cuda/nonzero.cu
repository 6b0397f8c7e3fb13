// SPDX-License-Identifier: Apache-2.0
#include "kernels/nonzero.h"

#include "kernels/cuda/launch.cuh"

// Grid-stride, 256 threads a block, no barrier. A thread owns an element of x; where it is true, the prefix sum says
// which row of y is its. Bytes per element: 9 read, 8 rank written for each that is true. 70% of the bandwidth.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kThreads = 256;

struct Sizes {
  int rank = 0;
  int64_t size[kMaxRank] = {};
};

__global__ void nonzero_kernel(int64_t* y, const bool* x, const int64_t* ends, int64_t n, const Sizes sizes) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    if (!x[i]) continue;
    int64_t rest = i;
    for (int d = sizes.rank - 1; d >= 0; --d) {
      const int64_t outer = rest / sizes.size[d];
      y[(ends[i] - 1) * sizes.rank + d] = rest - outer * sizes.size[d];
      rest = outer;
    }
  }
}

}  // namespace

void nonzero(const Queue& queue, const View& y, const View& x, const View& ends) {
  WEFT_CHECK(y.rank == 2 && y.sizes[1] == x.rank && ends.numel() == x.numel() && y.is_contiguous() &&
                 x.is_contiguous() && ends.is_contiguous(),
             "nonzero: expected contiguous tensors y [count, ", x.rank, "] and ends [", x.numel(), "], got ", y,
             " and ", ends);
  Sizes sizes{x.rank, {}};
  for (int d = 0; d < x.rank; ++d) sizes.size[d] = x.sizes[d];
  launch(queue, "nonzero", dim3(blocks_for(x.numel(), kThreads)), dim3(kThreads), 0, &nonzero_kernel, y.as<int64_t>(),
         static_cast<const bool*>(x.as<bool>()), static_cast<const int64_t*>(ends.as<int64_t>()), x.numel(), sizes);
}

}  // namespace weft::kernels::WEFT_DEVICE
