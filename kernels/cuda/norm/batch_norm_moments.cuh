// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/norm/batch_norm.cuh"
#include "kernels/cuda/norm/moments.cuh"
#include "kernels/runtime/allocator.h"

namespace weft::kernels::cuda::channelwise {

/// Number of rows, mean and M2 (sum of squared distances from the mean) of one channel.
template <class A>
struct Moments {
  A n, mean, m2;
};

/// Combines get(0), …, get(count - 1): first the mean of all, then the distances from it, with a single division.
template <class A, class Get>
__device__ __forceinline__ Moments<A> join_all(const int count, Get&& get) {
  const A center = get(0).mean;
  A n = 0, sum = 0, m2 = 0;
  WEFT_UNROLL
  for (int k = 0; k < count; ++k) {
    n += get(k).n;
    sum += get(k).n * (get(k).mean - center);
  }
  const A mean = n > A(0) ? center + sum / n : A(0);
  WEFT_UNROLL
  for (int k = 0; k < count; ++k) {
    const A distance = get(k).mean - mean;
    m2 += get(k).m2 + get(k).n * distance * distance;
  }
  return {n, mean, m2};
}

/// Combines load(first), load(first + step), … with indices below `count`; kBatch loads are in flight at a time.
template <class A, class Load>
__device__ __forceinline__ Moments<A> join_strided(int64_t first, const int64_t count, const int64_t step,
                                                   Load&& load) {
  Moments<A> all{A(0), A(0), A(0)};
  for (; first < count; first += kBatch<A> * step) {
    Moments<A> batch[kBatch<A>];
    WEFT_UNROLL
    for (int k = 0; k < kBatch<A>; ++k)
      batch[k] = first + k * step < count ? load(first + k * step) : Moments<A>{A(0), A(0), A(0)};
    const Moments<A> more = join_all<A>(kBatch<A>, [&](int k) { return batch[k]; });
    join(all.n, all.mean, all.m2, more.n, more.mean, more.m2);
  }
  return all;
}

/// Parts of a batch in the format of batch_norm.h, [count, 2C + 1]: one per rank, or per chunk of x.
template <class A>
struct Parts {
  const A* data;
  int64_t count;
};

/// Called by all threads of a block. Combines the parts of the tile's channels; thread t < width gets the statistics of
/// the t-th channel.
template <class A>
__device__ __forceinline__ Moments<A> join_parts(const Parts<A>& parts, const int64_t C, const int width) {
  __shared__ A shared_n[kThreads], shared_mean[kThreads], shared_m2[kThreads];
  const ChunkShare share(C, width);
  const Moments<A> own = join_strided<A>(share.lane, share.valid ? parts.count : 0, share.lanes, [&](int64_t part) {
    const A* const data = parts.data + part * (2 * C + 1);
    return Moments<A>{data[2 * C], data[share.c], data[C + share.c]};
  });
  shared_n[threadIdx.x] = own.n;
  shared_mean[threadIdx.x] = own.mean;
  shared_m2[threadIdx.x] = own.m2;
  __syncthreads();
  if (share.lane > 0) return own;
  const int lanes = parts.count < share.lanes ? static_cast<int>(parts.count) : share.lanes;  // others have none
  return join_all<A>(lanes, [&](int k) {
    const int at = k * width + share.column;
    return Moments<A>{shared_n[at], shared_mean[at], shared_m2[at]};
  });
}

template <class A>
__device__ void move_running(A* running_mean, A* running_var, const Moments<A>& batch, const int64_t c,
                             const A momentum) {
  const A n = batch.n, mean = batch.mean, m2 = batch.m2, var = m2 / n;
  if (!(n > A(0))) return;
  if (running_mean != nullptr) running_mean[c] += momentum * (mean - running_mean[c]);
  if (running_var != nullptr) running_var[c] += momentum * ((n > A(1) ? m2 / (n - A(1)) : var) - running_var[c]);
}

/// The statistics of x's chunks: the first kernel of forward and of batch_norm_statistics.
class ChunkStatistics {
 public:
  ChunkStatistics(const Queue& queue, const char* name, const View& x);

  template <class A>
  Parts<A> parts() const {
    return {parts_.as<A>(), chunks_};
  }

 private:
  int64_t chunks_;
  Workspace parts_;
};

}  // namespace weft::kernels::cuda::channelwise
