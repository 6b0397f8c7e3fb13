// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

namespace weft::kernels::cuda::channelwise {

/// Combines (n, mean, M2) of two sets into the first (Chan et al. 1979).
template <class A>
__device__ void join(A& n, A& mean, A& m2, A other_n, A other_mean, A other_m2) {
  const A total = n + other_n;
  if (other_n > A(0)) {
    const A delta = other_mean - mean, share = other_n / total;
    mean += delta * share;
    m2 += other_m2 + delta * delta * n * share;
    n = total;
  }
}

}  // namespace weft::kernels::cuda::channelwise
