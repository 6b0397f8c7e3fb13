// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/racing.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"

// The marks `// first: name` and `// second: name` are looked up by racing.cpp: a report must name both lines.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kThreads = 64;

/// Each thread's index comes from memory, so that the compiler cannot see who reads what.
__global__ void shared_kernel(Race race, bool repaired, int* data) {
  __shared__ int tile[kThreads];
  const int t = static_cast<int>(threadIdx.x), lane = t % 32;
  const unsigned full = 0xffffffffu;
  switch (race) {
    case Race::no_barrier_before_reading:
      tile[t] = data[t];  // first: no_barrier_before_reading
      if (repaired) __syncthreads();
      data[t] = tile[kThreads - 1 - t];  // second: no_barrier_before_reading
      return;
    case Race::no_barrier_at_the_end_of_the_loop:
      for (int i = 0; i < 2; ++i) {
        tile[t] = data[t + i];  // first: no_barrier_at_the_end_of_the_loop
        __syncthreads();
        data[256 + t] += tile[kThreads - 1 - t];  // second: no_barrier_at_the_end_of_the_loop
        if (repaired) __syncthreads();
      }
      return;
    case Race::shared_histogram_without_atomics:
      tile[t] = 0;
      __syncthreads();
      if (repaired)
        atomicAdd(&tile[data[t] % 4], 1);
      else
        tile[data[t] % 4] += 1;  // both: shared_histogram_without_atomics
      __syncthreads();
      data[t] = tile[t];
      return;
    case Race::atomic_read_plainly:
      if (t == 0) tile[0] = 0;
      __syncthreads();
      atomicAdd(&tile[0], 1);  // first: atomic_read_plainly
      if (repaired) __syncthreads();
      data[t] = tile[0];  // second: atomic_read_plainly
      return;
    case Race::warp_synchronous: {
      int* const own = tile + t / 32 * 32;
      own[lane] = data[t];
      __syncwarp();
      for (int distance = 16; distance > 0; distance /= 2) {
        if (lane < distance) own[lane] += own[lane + distance];  // both: warp_synchronous
        if (repaired) __syncwarp();
      }
      if (lane == 0) data[t] = own[0];
      return;
    }
    case Race::shuffle_is_no_barrier:
      tile[t] = data[t];  // first: shuffle_is_no_barrier
      data[256 + t] = __shfl_xor_sync(full, t, 1);
      if (repaired) __syncwarp();
      data[t] = tile[t ^ 1];  // second: shuffle_is_no_barrier
      return;
    case Race::partial_mask:
      // The halves of a warp each wait for themselves; the lower one reads the upper one's values.
      tile[t] = data[t];  // first: partial_mask
      if (repaired)
        __syncwarp();
      else
        __syncwarp(lane < 16 ? 0x0000ffffu : 0xffff0000u);
      data[t] = tile[t ^ 1];
      if (lane < 16) data[256 + t] = tile[t + 16];  // second: partial_mask
      return;
    default:
      return;
  }
}

/// Bounds, and memory that was never written.
__global__ void memory_kernel(Race race, bool repaired, int* data, int* fresh) {
  __shared__ int tile[kThreads];
  WEFT_DYNAMIC_SHARED(int, dynamic);  // [kThreads]
  const int t = static_cast<int>(threadIdx.x), end = kThreads + (repaired ? 0 : 1);
  switch (race) {
    case Race::global_one_past_the_end:
      for (int i = t; i < end; i += kThreads) fresh[i] = t;  // both: global_one_past_the_end
      return;
    case Race::dynamic_shared_one_past_the_end:
      for (int i = t; i < end; i += kThreads) dynamic[i] = t;  // both: dynamic_shared_one_past_the_end
      return;
    case Race::static_shared_one_past_the_end:
      for (int i = t; i < end; i += kThreads) tile[i] = t;  // both: static_shared_one_past_the_end
      return;
    case Race::uninitialised_global:
      if (repaired) fresh[t] = t;
      data[t] = fresh[t];  // both: uninitialised_global
      return;
    case Race::uninitialised_shared:
      if (repaired || t < 63) tile[t] = t;
      __syncthreads();
      data[t] = tile[kThreads - 1 - t];  // both: uninitialised_shared
      return;
    default:
      return;
  }
}

__global__ void copy_kernel(Race race, bool repaired, int* data) {
  WEFT_DYNAMIC_SHARED(int, stages);  // [2][kThreads]
  const int t = static_cast<int>(threadIdx.x);
  switch (race) {
    case Race::copy_waits_for_too_few:
      for (int stage = 0; stage < 2; ++stage) {
        ptx::cp_async<4>(stages + stage * kThreads + t, data + stage * kThreads + t);  // first: copy_waits_for_too_few
        ptx::cp_async_commit();
      }
      if (repaired)
        ptx::cp_async_wait_group<1>();
      else
        ptx::cp_async_wait_group<2>();
      __syncthreads();
      data[256 + t] = stages[kThreads - 1 - t];  // second: copy_waits_for_too_few
      ptx::cp_async_wait_all();
      return;
    case Race::copy_never_waited_for_here:
      ptx::cp_async<4>(stages + t, data + t);  // first: copy_never_waited_for_here
      ptx::cp_async_commit();
      if (repaired) ptx::cp_async_wait_all();
      data[256 + t] = stages[t];  // second: copy_never_waited_for_here
      ptx::cp_async_wait_all();
      return;
    case Race::no_barrier_after_the_wait:
      ptx::cp_async<4>(stages + t, data + t);  // first: no_barrier_after_the_wait
      ptx::cp_async_commit();
      ptx::cp_async_wait_all();
      if (repaired) __syncthreads();
      data[256 + t] = stages[kThreads - 1 - t];  // second: no_barrier_after_the_wait
      return;
    case Race::copy_source_overwritten:
      ptx::cp_async<4>(stages + t, data + t);  // first: copy_source_overwritten
      ptx::cp_async_commit();
      if (repaired) ptx::cp_async_wait_all();
      __syncthreads();
      data[kThreads - 1 - t] = t;  // second: copy_source_overwritten
      ptx::cp_async_wait_all();
      return;
    default:
      return;
  }
}

/// Two blocks, or more.
__global__ void grid_kernel(Race race, bool repaired, int* data) {
  __shared__ bool is_last;
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  int* const partial = data;
  unsigned* const count = reinterpret_cast<unsigned*>(data + 512);
  switch (race) {
    case Race::blocks_overlap:
      data[block * (repaired ? kThreads : kThreads - 1) + t] = block;  // both: blocks_overlap
      return;
    case Race::histogram_without_atomics:
      if (repaired)
        atomicAdd(&data[512 + data[t] % 4], 1);
      else
        data[512 + data[t] % 4] += 1;  // both: histogram_without_atomics
      return;
    case Race::last_block_without_fence:
      if (t == 0) {
        partial[block] = block;  // first: last_block_without_fence
        if (repaired) __threadfence();
        is_last = atomicAdd(count, 1u) == static_cast<unsigned>(blocks - 1);
        if (is_last)
          for (int i = 0; i < blocks; ++i) data[600] += partial[i];  // second: last_block_without_fence
      }
      return;
    case Race::last_block_without_atomic:
      if (t == 0) {
        partial[block] = block;  // first: last_block_without_atomic
        __threadfence();
        const int finished = repaired ? static_cast<int>(atomicAdd(count, 1u)) : block;
        if (finished == blocks - 1) data[600] = partial[0];  // second: last_block_without_atomic
      }
      return;
    case Race::other_threads_not_published:
      // The fence of thread 0 covers the block only after a barrier.
      partial[block * kThreads + t] = block;  // first: other_threads_not_published
      if (repaired) __syncthreads();
      if (t == kThreads - 1) {
        __threadfence();
        if (atomicAdd(count, 1u) == static_cast<unsigned>(blocks - 1))
          data[600] = partial[0];  // second: other_threads_not_published
      }
      return;
    default:
      return;
  }
}

template <class T>
__global__ void neighbours_kernel(T* y, const T* x, int n) {
  __shared__ T tile[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  for (int begin = static_cast<int>(blockIdx.x) * kThreads; begin < n;
       begin += static_cast<int>(gridDim.x) * kThreads) {
    if (begin + t < n) tile[t] = x[begin + t];
    __syncthreads();
    const int from = kThreads - 1 - t;
    if (begin + from < n) y[begin + from] = T(static_cast<float>(tile[from]) * 2);
    __syncthreads();
  }
}

__global__ void last_block_sum_kernel(int* sum, int* partial, unsigned* count, const int* x, int n) {
  __shared__ int of_thread[kThreads];
  __shared__ bool is_last;
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  const auto block_sum = [&](int value) {
    of_thread[t] = value;
    __syncthreads();
    for (int distance = kThreads / 2; distance > 0; distance /= 2) {
      if (t < distance) of_thread[t] += of_thread[t + distance];
      __syncthreads();
    }
  };
  int value = 0;
  for (int i = block * kThreads + t; i < n; i += blocks * kThreads) value += x[i];
  block_sum(value);
  if (t == 0) partial[block] = of_thread[0];
  __threadfence();
  __syncthreads();
  if (t == kThreads - 1) is_last = atomicAdd(count, 1u) == static_cast<unsigned>(blocks - 1);
  __syncthreads();
  if (is_last) {
    value = 0;
    for (int i = t; i < blocks; i += kThreads) value += partial[i];
    block_sum(value);
    if (t == 0) {
      *sum = of_thread[0];
      *count = 0;
    }
  }
}

}  // namespace

void race(const Queue& queue, Race race, bool repaired, int* data, int* fresh) {
  switch (race) {
    case Race::copy_waits_for_too_few:
    case Race::copy_never_waited_for_here:
    case Race::no_barrier_after_the_wait:
    case Race::copy_source_overwritten:
      return launch(queue, "race", Grid{1}, Block{kThreads}, 2 * kThreads * sizeof(int), copy_kernel, race, repaired,
                    data);
    case Race::blocks_overlap:
    case Race::histogram_without_atomics:
    case Race::last_block_without_fence:
    case Race::last_block_without_atomic:
    case Race::other_threads_not_published:
      return launch(queue, "race", Grid{2}, Block{kThreads}, 0, grid_kernel, race, repaired, data);
    case Race::global_one_past_the_end:
    case Race::dynamic_shared_one_past_the_end:
    case Race::static_shared_one_past_the_end:
    case Race::uninitialised_global:
    case Race::uninitialised_shared:
      return launch(queue, "race", Grid{1}, Block{kThreads}, kThreads * sizeof(int), memory_kernel, race, repaired,
                    data, fresh);
    default:
      return launch(queue, "race", Grid{1}, Block{kThreads}, 0, shared_kernel, race, repaired, data);
  }
}

template <class T>
void neighbours(const Queue& queue, T* y, const T* x, int n) {
  launch(queue, "neighbours", Grid{3}, Block{kThreads}, 0, neighbours_kernel<T>, y, x, n);
}
template void neighbours(const Queue&, float*, const float*, int);
template void neighbours(const Queue&, bf16*, const bf16*, int);
template void neighbours(const Queue&, uint8_t*, const uint8_t*, int);

void last_block_sum(const Queue& queue, int* sum, int* partial, unsigned* count, const int* x, int n, unsigned blocks) {
  launch(queue, "last_block_sum", Grid{blocks}, Block{kThreads}, 0, last_block_sum_kernel, sum, partial, count, x, n);
}

}  // namespace weft::kernels::WEFT_DEVICE
