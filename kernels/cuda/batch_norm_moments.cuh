// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/allocator.h"
#include "kernels/cuda/batch_norm.cuh"
#include "kernels/cuda/moments.cuh"

namespace weft::kernels::WEFT_DEVICE::channelwise {

/// Rows, mean and squared distances of one channel.
template <class A>
struct Moments {
  A n, mean, m2;
};

/// `lanes` (a power of two, at most 32) neighbouring threads join the chunks of channel c; all of them get the result.
template <class A>
__device__ Moments<A> join_chunks(const A* partial_mean, const A* partial_m2, const Geometry2d& g, const int64_t c,
                                  const int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  A n = 0, mean = 0, m2 = 0;
  if (c < g.C) {
    for (int64_t chunk = lane; chunk < g.chunks; chunk += lanes) {
      const int64_t begin = chunk * g.per_chunk, left = g.M - begin;
      join(n, mean, m2, static_cast<A>(left < g.per_chunk ? left : g.per_chunk), partial_mean[c * g.chunks + chunk],
           partial_m2[c * g.chunks + chunk]);
    }
  }
  for (int distance = 1; distance < lanes; distance *= 2) {
    const A other_n = __shfl_xor_sync(kAllLanes, n, distance), other_mean = __shfl_xor_sync(kAllLanes, mean, distance);
    join(n, mean, m2, other_n, other_mean, __shfl_xor_sync(kAllLanes, m2, distance));
  }
  return {n, mean, m2};
}

template <class A>
__device__ void move_running(A* running_mean, A* running_var, const Moments<A>& batch, const int64_t c,
                             const A momentum) {
  const A n = batch.n, mean = batch.mean, m2 = batch.m2, var = m2 / n;
  if (running_mean != nullptr) running_mean[c] += momentum * (mean - running_mean[c]);
  if (running_var != nullptr) running_var[c] += momentum * ((n > A(1) ? m2 / (n - A(1)) : var) - running_var[c]);
}

/// The statistics of the chunks of x, [C, chunks] each: the first kernel of forward and of batch_norm_statistics.
class ChunkStatistics {
 public:
  ChunkStatistics(const Queue& queue, const char* name, const View& x);

  const Geometry2d& geometry() const { return geometry_; }
  int lanes() const { return lanes_for(geometry_.chunks); }
  template <class A>
  const A* mean() const {
    return partial_.as<A>();
  }
  template <class A>
  const A* m2() const {
    return partial_.as<A>() + geometry_.C * geometry_.chunks;
  }

 private:
  Geometry2d geometry_;
  Workspace partial_;
};

}  // namespace weft::kernels::WEFT_DEVICE::channelwise
