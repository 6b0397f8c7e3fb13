// SPDX-License-Identifier: Apache-2.0
// Programs with one planted misuse of warp collectives, barriers, asynchronous copies or division, named by the
// argument: misuse.cmake has what the emulator must report. A name with `_right` is the repaired twin, which must pass
// in silence.
#include "tests/emulator/planted.h"

namespace {

constexpr int kThreads = 64;
constexpr int kZero = 256;  // an index of data that no thread writes by itself
constexpr unsigned kFull = 0xffffffffu, kHalf = 0x0000ffffu;

PLANTED(Misuse, mask_without_the_caller, half_warp_calls_full_shuffle, half_warp_calls_full_vote,
        half_warp_calls_full_match, half_warp_calls_full_reduction, two_collectives_with_one_mask,
        barrier_against_collective, two_barriers_of_one_warp, two_masks_at_two_places, guard_excludes_members, shuffle_from_outside_the_mask,
        shuffle_from_an_exited_lane, shuffle_from_a_missing_lane, division_by_zero, remainder_by_zero,
        barrier_of_two_sizes, static_shared_one_past_the_end, atomic_one_past_the_end, copy_to_global_memory,
        copy_misaligned, copy_at_exit);

__device__ unsigned shared_address(const void* memory) {
  return static_cast<unsigned>(__cvta_generic_to_shared(memory));
}

__global__ void warp_kernel(Misuse misuse, bool right, int* data) {
  const int t = static_cast<int>(threadIdx.x), lane = t % 32;
  int value = t;
  switch (misuse) {
    case Misuse::mask_without_the_caller:
      value = __shfl_sync(right ? kFull : 1u, t, 0);
      break;
    case Misuse::half_warp_calls_full_shuffle:
      if (lane < 16) value = __shfl_sync(right ? kHalf : kFull, t, 0);
      __syncthreads();
      break;
    case Misuse::half_warp_calls_full_vote:
      if (lane < 16) value = static_cast<int>(__ballot_sync(right ? kHalf : kFull, t & 1));
      __syncthreads();
      break;
    case Misuse::half_warp_calls_full_match:
      if (lane < 16) value = static_cast<int>(__match_any_sync(right ? kHalf : kFull, t & 1));
      __syncthreads();
      break;
    case Misuse::half_warp_calls_full_reduction:
      if (lane < 16) value = __reduce_add_sync(right ? kHalf : kFull, t);
      __syncthreads();
      break;
    case Misuse::two_collectives_with_one_mask:
      if (lane < 16)
        value = __shfl_sync(right ? kHalf : kFull, t, 0);
      else
        value = __any_sync(right ? ~kHalf : kFull, t);
      break;
    case Misuse::barrier_against_collective:
      if (t < 8) __syncwarp(right ? 0xffu : kFull);
      __syncthreads();
      break;
    case Misuse::two_barriers_of_one_warp:
      if (right || lane < 16)
        __syncthreads();
      else
        asm volatile("bar.sync 0;" ::: "memory");
      break;
    case Misuse::two_masks_at_two_places:
      // Lanes may wait for each other at two places when they name the same lanes.
      if (lane < 16) {
        data[kZero + t] = t;
        __syncwarp(right ? kFull : kHalf);
      } else {
        __syncwarp(kFull);
        value = data[kZero + t - 16];
      }
      __syncthreads();
      break;
    case Misuse::guard_excludes_members:
      asm volatile("{ .reg .pred p; setp.lt.u32 p, %0, 16; @p bar.warp.sync %1; }" ::"r"(lane),
                   "r"(right ? kHalf : kFull)
                   : "memory");
      __syncthreads();
      break;
    case Misuse::shuffle_from_outside_the_mask:
      if (lane < 16) value = __shfl_sync(kHalf, t, right ? 3 : 20);
      break;
    case Misuse::shuffle_from_an_exited_lane:
      if (lane == 3) return;
      // A mask may name lanes that have exited.
      value = __shfl_sync(kFull, t, right ? 4 : 3) + __any_sync(kFull, t) + __reduce_add_sync(kFull, t);
      __syncwarp();
      break;
    case Misuse::shuffle_from_a_missing_lane:
      // A block of 40 threads: a mask may name lanes that do not exist.
      value = __shfl_down_sync(kFull, t, 1, right ? 8 : 32) + __all_sync(kFull, t);
      __syncwarp();
      break;
    case Misuse::division_by_zero:
      if (!right || data[kZero] != 0) value = t / data[kZero];
      break;
    case Misuse::remainder_by_zero:
      value = static_cast<int>(static_cast<long long>(t) % (data[kZero] + (right ? 7ll : 0ll)));
      break;
    default:
      break;
  }
  data[t] = value;
}

__global__ void block_kernel(Misuse misuse, bool right, int* data) {
  __shared__ alignas(16) int tile[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  unsigned to = shared_address(tile + t);
  switch (misuse) {
    case Misuse::barrier_of_two_sizes:
      asm volatile("barrier.sync 3, %0;" ::"r"(t < 32 || right ? 64 : 96) : "memory");
      return;
    case Misuse::static_shared_one_past_the_end:
      tile[t + data[kZero] + !right] = t;
      __syncthreads();
      data[t] = tile[t];
      return;
    case Misuse::atomic_one_past_the_end:
      atomicAdd(data + t + (right ? 0 : kDataBytes / sizeof(int)), 1);
      return;
    case Misuse::copy_to_global_memory:
      if (!right) to = static_cast<unsigned>(reinterpret_cast<unsigned long long>(data) | 1u << 31);
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n\tcp.async.wait_all;" ::"r"(to), "l"(data + t)
                   : "memory");
      return;
    case Misuse::copy_misaligned:
      if (t == 0)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n\tcp.async.wait_all;" ::"r"(to), "l"(data + !right)
                     : "memory");
      return;
    case Misuse::copy_at_exit:
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n\tcp.async.commit_group;" ::"r"(to), "l"(data + t)
                   : "memory");
      if (right) asm volatile("cp.async.wait_group 0;" ::: "memory");
      // Loops end with copies of no bytes, which nobody waits for.
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n\tcp.async.commit_group;" ::"r"(to), "l"(data + t),
                   "r"(0)
                   : "memory");
      return;
    default:
      return;
  }
}

void launch(Misuse misuse, bool right, int* data) {
  const auto kernel = misuse < Misuse::barrier_of_two_sizes ? warp_kernel : block_kernel;
  const int threads = misuse == Misuse::two_masks_at_two_places       ? 32
                      : misuse == Misuse::shuffle_from_a_missing_lane ? 40
                                                                      : kThreads;
  kernel<<<1, threads>>>(misuse, right, data);
}

}  // namespace

int main(int argc, char** argv) { return run_planted(argc, argv, "misuse", kPlanted, launch); }
