// SPDX-License-Identifier: Apache-2.0
// Programs with one planted race or read of memory that was never written, named by the argument: races.cmake has what
// the emulator must report under --check. A name with `_right` is the repaired twin, which must pass in silence.
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdio>

#include "tests/emulator/planted.h"

namespace {

constexpr int kThreads = 64;

PLANTED(Race, no_barrier_before_reading, no_barrier_at_the_end_of_the_loop, shared_histogram_without_atomics,
        atomic_read_plainly, warp_synchronous, shuffle_is_no_barrier, partial_mask, one_place_two_values,
        one_place_one_value, between_warps, copy_waits_for_too_few, copy_never_waited_for_here,
        copy_waited_for_by_one_warp, no_barrier_after_the_wait, copy_source_overwritten, blocks_overlap,
        histogram_without_atomics, atomic_of_the_block, plain_write_before_atomics, plain_read_before_atomics,
        last_block_without_fence, last_block_with_a_fence_of_the_block, last_block_without_atomic,
        other_threads_not_published, flag_without_release, volatile_flag_without_fence, exchanged_by_many,
        ldmatrix_too_early, wmma_too_early, named_barrier_of_others, arrival_is_no_wait, uninitialised_global,
        uninitialised_shared, uninitialised_local, uninitialised_copy, uninitialised_branch, uninitialised_address,
        uninitialised_selected, uninitialised_pair, uninitialised_condition, uninitialised_passed_on, uninitialised_printed, sub_word);

/// A load that nvcc neither moves nor drops.
__device__ int load_now(const int* shared) {
  int value;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(value) : "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))));
  return value;
}

/// Thread 0 loads tile[63], which nobody has written, in the right programs, too: they drop the value.
__device__ void uses_of_undefined(Race race, bool right, int* tile, int* data) {
  __shared__ int copy[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (t < 63) tile[t] = t;
  __syncthreads();
  const int x = load_now(tile + kThreads - 1 - t);
  const bool known = t != 0 || !right;
  switch (race) {
    case Race::uninitialised_branch:
      if (known && x + 1 > data[0])
        for (int i = 0; i < data[513]; ++i) atomicAdd(data + i, 1);
      return;
    case Race::uninitialised_address:
      if (known) data[x & 63] = 1;
      return;
    case Race::uninitialised_selected:
      asm volatile(
          "{ .reg .pred p; .reg .s32 y;\n setp.ne.s32 p, %1, 0;\n mad.lo.s32 y, %2, 3, 1;\n selp.s32 y, y, 7, p;\n"
          " st.global.s32 [%0], y; }" ::"l"(data + t), "r"(static_cast<int>(known)), "r"(x));
      return;
    case Race::uninitialised_pair:
      // Two registers become one and are parted again.
      asm volatile(
          "{ .reg .b64 both; .reg .b32 low, high;\n mov.b64 both, {%1, %2};\n mov.b64 {low, high}, both;\n"
          " st.global.b32 [%0], high; }" ::"l"(data + t), "r"(right ? x : t), "r"(right ? t : x));
      return;
    case Race::uninitialised_condition:
      // False, and anything: false.
      asm volatile(
          "{ .reg .pred p, q;\n setp.ne.s32 p, %1, 0;\n setp.gt.and.s32 q, %2, 5, p;\n and.pred q, q, p;\n"
          " @q st.global.s32 [%0], %1; }" ::"l"(data + t), "r"(static_cast<int>(known)), "r"(x));
      return;
    default: {
      // Through other shared memory and another lane.
      copy[t] = x;
      __syncthreads();
      const int y = __shfl_sync(0xffffffffu, load_now(copy + t), right ? max(t % 32, 1) : t % 32);
      data[t] = y;
      return;
    }
  }
}

__global__ void shared_kernel(Race race, bool right, int* data) {
  __shared__ int tile[kThreads];
  const int t = static_cast<int>(threadIdx.x), lane = t % 32;
  const unsigned full = 0xffffffffu;
  switch (race) {
    case Race::no_barrier_before_reading:
      tile[t] = data[t];
      if (right) __syncthreads();
      data[t] = tile[kThreads - 1 - t];
      return;
    case Race::no_barrier_at_the_end_of_the_loop:
      for (int i = 0; i < 2; ++i) {
        tile[t] = data[t + i];
        __syncthreads();
        data[256 + t] += tile[kThreads - 1 - t];
        if (right) __syncthreads();
      }
      return;
    case Race::shared_histogram_without_atomics:
      tile[t] = 0;
      __syncthreads();
      if (right)
        atomicAdd(&tile[data[t] % 4], 1);
      else
        tile[data[t] % 4] += 1;
      __syncthreads();
      data[t] = tile[t];
      return;
    case Race::atomic_read_plainly:
      if (t == 0) tile[0] = 0;
      __syncthreads();
      atomicAdd(&tile[0], 1);
      if (right) __syncthreads();
      data[t] = tile[0];
      return;
    case Race::warp_synchronous: {
      int* const own = tile + t / 32 * 32;
      own[lane] = data[t];
      __syncwarp();
      for (int distance = 16; distance > 0; distance /= 2) {
        if (lane < distance) own[lane] += own[lane + distance];
        if (right) __syncwarp();
      }
      if (lane == 0) data[t] = own[0];
      return;
    }
    case Race::shuffle_is_no_barrier:
      tile[t] = data[t];
      data[256 + t] = __shfl_xor_sync(full, t, 1);
      if (right) __syncwarp();
      data[t] = tile[t ^ 1];
      return;
    case Race::partial_mask:
      // The halves of a warp each wait for themselves; the lower half reads the upper half's values.
      tile[t] = data[t];
      if (right)
        __syncwarp();
      else
        __syncwarp(lane < 16 ? 0x0000ffffu : 0xffff0000u);
      data[t] = tile[t ^ 1];
      if (lane < 16) data[256 + t] = tile[t + 16];
      return;
    case Race::one_place_two_values:
      if (t < 32) tile[0] = right ? 7 : lane;
      __syncthreads();
      data[t] = tile[0];
      return;
    case Race::one_place_one_value:
      if (right ? t == 0 : lane == 0) tile[0] = 7;
      __syncthreads();
      data[t] = tile[0];
      return;
    case Race::between_warps:
      // Each warp is in order with itself.
      tile[t] = data[t];
      __syncwarp();
      data[256 + t] = tile[t ^ 1];
      if (right) __syncthreads();
      data[t] = tile[(t + 32) % kThreads];
      return;
    case Race::sub_word: {
      // Neighbours of a word are no race.
      char* const bytes = reinterpret_cast<char*>(tile);
      bytes[t] = static_cast<char>(data[t]);
      if (right) __syncthreads();
      data[t] = reinterpret_cast<short*>(tile)[t / 2];
      return;
    }
    case Race::uninitialised_shared:
      if (right || t < 63) tile[t] = t;
      __syncthreads();
      data[t] = tile[kThreads - 1 - t];
      return;
    case Race::uninitialised_branch:
    case Race::uninitialised_address:
    case Race::uninitialised_selected:
    case Race::uninitialised_pair:
    case Race::uninitialised_condition:
    case Race::uninitialised_passed_on:
      uses_of_undefined(race, right, tile, data);
      return;
    case Race::uninitialised_local: {
      int own[8];
      for (int i = 0; i < (right ? 8 : 7); ++i) own[(i + data[512]) % 8] = i;
      data[t] = own[(data[513 + t] + t) % 8];
      return;
    }
    case Race::arrival_is_no_wait:
      // The first warp notifies the second, not the other way round.
      if (t < 32) {
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        if (right) asm volatile("bar.sync 2, 64;" ::: "memory");
        data[t] = tile[t];
      } else {
        tile[t - 32] = t;
        asm volatile("bar.sync 1, 64;" ::: "memory");
        if (right) asm volatile("bar.sync 2, 64;" ::: "memory");
      }
      return;
    default:
      return;
  }
}

__global__ void print_kernel(bool right) {
  __shared__ int tile[2];
  if (threadIdx.x == 0) tile[0] = 1;
  __syncthreads();
  const int x = load_now(tile + threadIdx.x);
  printf("%d\n", right ? 0 : x);
}

__global__ void three_warps_kernel(bool right, int* data) {
  __shared__ int tile[96];
  const int t = static_cast<int>(threadIdx.x);
  if (t < 64) tile[t] = data[t];
  if (right)
    asm volatile("bar.sync 1, 96;" ::: "memory");
  else if (t < 64)
    asm volatile("bar.sync 1, 64;" ::: "memory");
  if (t < 32) data[256 + t] = tile[t + 32];
  if (t >= 64) data[t] = tile[t - 64];
}

__device__ void copy_async(int* to, const int* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n\tcp.async.commit_group;" ::"r"(address), "l"(from)
               : "memory");
}
template <int kOpen>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

__global__ void copy_kernel(Race race, bool right, int* data) {
  extern __shared__ int stages[];  // [2][kThreads]
  const int t = static_cast<int>(threadIdx.x);
  switch (race) {
    case Race::copy_waits_for_too_few:
      for (int stage = 0; stage < 2; ++stage) copy_async(stages + stage * kThreads + t, data + stage * kThreads + t);
      if (right)
        wait_copies<1>();
      else
        wait_copies<2>();
      __syncthreads();
      data[256 + t] = stages[kThreads - 1 - t];
      wait_copies<0>();
      return;
    case Race::copy_never_waited_for_here:
      copy_async(stages + t, data + t);
      if (right) wait_copies<0>();
      data[256 + t] = stages[t];
      wait_copies<0>();
      return;
    case Race::copy_waited_for_by_one_warp:
      copy_async(stages + t, data + t);
      if (right || t < 32) wait_copies<0>();
      __syncthreads();
      data[256 + t] = stages[kThreads - 1 - t];
      wait_copies<0>();
      return;
    case Race::no_barrier_after_the_wait:
      copy_async(stages + t, data + t);
      wait_copies<0>();
      if (right) __syncthreads();
      data[256 + t] = stages[kThreads - 1 - t];
      return;
    case Race::copy_source_overwritten:
      copy_async(stages + t, data + t);
      if (right) wait_copies<0>();
      __syncthreads();
      data[kThreads - 1 - t] = t;
      wait_copies<0>();
      return;
    default:
      return;
  }
}

__global__ void matrix_kernel(Race race, bool right, int* data) {
  __shared__ alignas(32) __half tile[16 * 16];
  const int t = static_cast<int>(threadIdx.x);
  for (int i = t; i < 256; i += 32) tile[i] = __int2half_rn(data[i]);
  if (right) __syncwarp();
  if (race == Race::ldmatrix_too_early) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile + t % 16 * 16));
    unsigned x, y;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(x), "=r"(y)
                 : "r"(address)
                 : "memory");
    data[t] = static_cast<int>(x ^ y);
  } else {
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major> a;
    nvcuda::wmma::load_matrix_sync(a, tile, 16);
    data[t] = __half2int_rn(a.x[0]);
  }
}

/// Two blocks, or more.
__global__ void grid_kernel(Race race, bool right, int* data) {
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  int *const partial = data, *const sum = data + 600;
  unsigned* const count = reinterpret_cast<unsigned*>(data + 512);
  switch (race) {
    case Race::blocks_overlap:
      data[block * (right ? kThreads : kThreads - 1) + t] = block;
      return;
    case Race::histogram_without_atomics:
      if (right)
        atomicAdd(&data[512 + data[t] % 4], 1);
      else
        data[512 + data[t] % 4] += 1;
      return;
    case Race::atomic_of_the_block:
      if (right)
        atomicAdd(&data[512], 1);
      else
        atomicAdd_block(&data[512], 1);
      return;
    case Race::plain_write_before_atomics:
      // A thread is in order with itself, so its own atomic separates its write from others'.
      if (t != 0) return;
      if (!right && block == 0) data[512] = 0;
      atomicAdd(&data[512], 1);
      return;
    case Race::plain_read_before_atomics:
      if (t != 0) return;
      if (!right && block == 0) data[0] = data[512];
      atomicAdd(&data[512], 1);
      return;
    case Race::last_block_without_fence:
    case Race::last_block_with_a_fence_of_the_block:
      if (t == 0) {
        partial[block] = block;
        if (right)
          __threadfence();
        else if (race == Race::last_block_with_a_fence_of_the_block)
          __threadfence_block();
        if (atomicAdd(count, 1u) == static_cast<unsigned>(blocks - 1))
          for (int i = 0; i < blocks; ++i) *sum += partial[i];
      }
      return;
    case Race::last_block_without_atomic:
      if (t == 0) {
        partial[block] = block;
        __threadfence();
        const int finished = right ? static_cast<int>(atomicAdd(count, 1u)) : block;
        if (finished == blocks - 1) *sum = partial[0];
      }
      return;
    case Race::other_threads_not_published:
      // The fence of one thread covers the block only after a barrier.
      partial[block * kThreads + t] = block;
      if (right) __syncthreads();
      if (t == kThreads - 1) {
        __threadfence();
        if (atomicAdd(count, 1u) == static_cast<unsigned>(blocks - 1)) *sum = partial[0];
      }
      return;
    case Race::flag_without_release:
      if (t != 0) return;
      if (block == 0) {
        partial[0] = 17;
        if (right)
          asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(count) : "memory");
        else
          asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(count) : "memory");
      } else if (block == 1) {
        unsigned flag = 0;
        while (flag == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(count) : "memory");
        *sum = partial[0];
      }
      return;
    case Race::volatile_flag_without_fence: {
      if (t != 0) return;
      volatile unsigned* const flag = count;
      if (block == 0) {
        partial[0] = 17;
        if (right) __threadfence();
        *flag = 1;
      } else if (block == 1) {
        while (*flag == 0) {
        }
        if (right) __threadfence();
        *sum = partial[0];
      }
      return;
    }
    default:
      return;
  }
}

/// Each thread of a grid exchanges one value between fences: an order of as many links as threads.
__global__ void exchange_kernel(bool right, int* value, int* places) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), place = right ? i : i / 2;
  __threadfence();
  const int was = atomicExch(value, places[place]);
  __threadfence();
  places[place] = was;
}

__global__ void fresh_kernel(bool right, int* data, int* fresh) {
  const int t = static_cast<int>(threadIdx.x);
  if (right) fresh[t] = t;
  data[t] = fresh[t];
}

void launch(Race race, bool right, int* data) {
  switch (race) {
    case Race::copy_waits_for_too_few:
    case Race::copy_never_waited_for_here:
    case Race::copy_waited_for_by_one_warp:
    case Race::no_barrier_after_the_wait:
    case Race::copy_source_overwritten:
      return copy_kernel<<<1, kThreads, 2 * kThreads * sizeof(int)>>>(race, right, data);
    case Race::blocks_overlap:
    case Race::histogram_without_atomics:
    case Race::atomic_of_the_block:
    case Race::plain_write_before_atomics:
    case Race::plain_read_before_atomics:
    case Race::last_block_without_fence:
    case Race::last_block_with_a_fence_of_the_block:
    case Race::last_block_without_atomic:
    case Race::other_threads_not_published:
    case Race::flag_without_release:
    case Race::volatile_flag_without_fence:
      return grid_kernel<<<4, kThreads>>>(race, right, data);
    case Race::exchanged_by_many: {
      constexpr int kBlocks = 1000, kMany = kBlocks * 128;
      int* places = nullptr;
      cudaMalloc(&places, kMany * sizeof(int));
      cudaMemset(places, 0, kMany * sizeof(int));
      return exchange_kernel<<<kBlocks, 128>>>(right, data, places);
    }
    case Race::ldmatrix_too_early:
    case Race::wmma_too_early:
      return matrix_kernel<<<1, 32>>>(race, right, data);
    case Race::uninitialised_printed:
      return print_kernel<<<1, 2>>>(right);
    case Race::named_barrier_of_others:
      return three_warps_kernel<<<1, 96>>>(right, data);
    case Race::uninitialised_global:
    case Race::uninitialised_copy: {
      int *fresh = nullptr, *copy = nullptr;
      cudaMalloc(&fresh, kThreads * sizeof(int));
      cudaMalloc(&copy, kThreads * sizeof(int));
      if (race == Race::uninitialised_global) return fresh_kernel<<<1, kThreads>>>(right, data, fresh);
      if (right) cudaMemset(fresh, 0, kThreads * sizeof(int));
      cudaMemcpy(copy, fresh, kThreads * sizeof(int), cudaMemcpyDeviceToDevice);
      return fresh_kernel<<<1, kThreads>>>(false, data, copy);
    }
    default:
      return shared_kernel<<<1, kThreads>>>(race, right, data);
  }
}

}  // namespace

int main(int argc, char** argv) { return run_planted(argc, argv, "race", kPlanted, launch); }
