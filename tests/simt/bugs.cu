// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/bugs.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"

// The line numbers do not matter, but the `// bug` marks do: bugs.cpp looks them up to know where a report must point.

namespace weft::kernels::WEFT_DEVICE {

namespace {

__device__ int recurse(int* data, int depth) {
  volatile char frame[512];
  frame[depth % 512] = static_cast<char>(depth);
  if (depth == 1000000) return data[0];
  return recurse(data, depth + 1) + frame[depth % 512];  // bug: stack_overflow
}

__device__ int use_a_lot(int* data) {
  volatile int local[200000];
  for (int i = 0; i < 200000; ++i) local[i] = data[i % 64];
  return local[data[0] & 1];
}

__global__ void plant_kernel(Bug bug, int* data) {
  __shared__ int fixed[16];
  WEFT_DYNAMIC_SHARED(int, dynamic);
  const int t = static_cast<int>(threadIdx.x);
  const unsigned full = 0xffffffffu;
  switch (bug) {
    case Bug::none:
      return;
    case Bug::return_before_barrier:
      if (t < 5) return;
      __syncthreads();  // bug: return_before_barrier
      return;
    case Bug::two_barriers:
      if (t < 32) {
        __syncthreads();
      } else {
        __syncthreads();  // bug: two_barriers
      }
      return;
    case Bug::half_warp_calls_full_shuffle:
      if (t % 32 < 16) data[t] = __shfl_sync(full, t, 0);  // bug: half_warp_calls_full_shuffle
      __syncthreads();
      return;
    case Bug::mask_without_the_caller:
      data[t] = __shfl_sync(1u, t, 0);  // bug: mask_without_the_caller
      return;
    case Bug::mask_names_exited_lanes:
      if (t % 32 == 3) return;
      __syncwarp();  // bug: mask_names_exited_lanes
      return;
    case Bug::mask_names_missing_lanes:
      __syncwarp();  // bug: mask_names_missing_lanes
      return;
    case Bug::two_collectives_with_one_mask:
      if (t % 32 < 16)
        data[t] = __shfl_sync(full, t, 0);
      else
        data[t] = __any_sync(full, t);  // bug: two_collectives_with_one_mask
      return;
    case Bug::shuffle_from_outside_the_mask:
      if (t % 32 < 16) data[t] = __shfl_sync(0xffffu, t, 20);
      return;
    case Bug::barrier_against_collective:
      if (t < 32) {
        __syncthreads();
      } else {
        if (t < 40) __syncwarp();
        __syncthreads();
      }
      return;
    case Bug::stack_overflow:
      data[0] = recurse(data, 0);
      return;
    case Bug::huge_local_array:
      data[0] = use_a_lot(data);
      return;
    case Bug::null_pointer:
      static_cast<int*>(nullptr)[t] = 1;  // bug: null_pointer
      return;
    case Bug::far_out_of_bounds:
      data[t + 100000] = 1;  // bug: far_out_of_bounds
      return;
    case Bug::integer_division_by_zero:
      data[t] = t / data[1];  // bug: integer_division_by_zero
      return;
    case Bug::misaligned_vector:
      ptx::st16(data + 1, uint4{});  // bug: misaligned_vector
      return;
    case Bug::trap:
      __trap();  // bug: trap
      return;
    case Bug::cp_async_to_global:
      ptx::cp_async<4>(data + t, data + t);  // bug: cp_async_to_global
      return;
    case Bug::cp_async_misaligned:
      ptx::cp_async<16>(dynamic, data + 1);  // bug: cp_async_misaligned
      return;
    case Bug::one_past_the_end:
      data[t + 1] = 1;  // bug: one_past_the_end
      return;
    case Bug::one_before_the_beginning:
      data[-t] = 1;  // bug: one_before_the_beginning
      return;
    case Bug::host_pointer:
      *data = 1;  // bug: host_pointer
      return;
    case Bug::shared_past_the_end:
      fixed[data[0] + (1 << 20)] = t;  // bug: shared_past_the_end
      return;
    case Bug::dynamic_shared_past_the_end:
      dynamic[t] = t;  // bug: dynamic_shared_past_the_end
      return;
    case Bug::uninitialised_global:
      if (t < 10)
        data[t] = t;
      else if (data[t] == 7)  // bug: uninitialised_global
        data[0] = 7;
      return;
    case Bug::uninitialised_shared:
      if (t < 15) fixed[t] = t;
      __syncthreads();
      data[t] = fixed[t % 16];  // bug: uninitialised_shared
      return;
    case Bug::uninitialised_dynamic_shared:
      if (t < 12) dynamic[t] = t;
      __syncthreads();
      data[t] = dynamic[t % 16];  // bug: uninitialised_dynamic_shared
      return;
    case Bug::atomic_out_of_bounds:
      atomicAdd(data + t + 1, 1);  // bug: atomic_out_of_bounds
      return;
  }
}

}  // namespace

void plant(const Queue& queue, Bug bug, int* data, unsigned threads) {
  launch(queue, "plant", Grid{1}, Block{threads}, 64, plant_kernel, bug, data);
}
void plant_shared(const Queue& queue, int* data, unsigned bytes) {
  launch(queue, "plant", Grid{1}, Block{1}, bytes, plant_kernel, Bug::none, data);
}

}  // namespace weft::kernels::WEFT_DEVICE
