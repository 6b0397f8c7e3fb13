// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/hopper_misuse.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx_wgmma.cuh"

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kShared = 16384;

__device__ void multiply(Misuse misuse, uint8_t* tiles) {
  float sums[16] = {};
  uint32_t a[4] = {};
  for (int i = static_cast<int>(threadIdx.x); i < kShared; i += 128) tiles[i] = 0;
  ptx::fence_proxy_async();
  __syncthreads();
  uint8_t* const from = tiles + (misuse == Misuse::operand_out_of_bounds      ? kShared - 2048
                                 : misuse == Misuse::operand_inside_a_pattern ? 256
                                                                              : 0);
  const uint64_t operand = ptx::wgmma_descriptor(from, Swizzle::bytes128, 16, 1024);
  const uint64_t good = ptx::wgmma_descriptor(tiles, Swizzle::bytes128, 16, 1024);
  ptx::wgmma_fence();
  ptx::wgmma<bf16, 32>(sums, operand, good);
  ptx::wgmma_commit();
  if (misuse == Misuse::wgmma_never_waited_for) return;
  if (misuse == Misuse::sums_written_before_wait) sums[3] = 1;
  ptx::wgmma_wait<0>();
  if (misuse == Misuse::sums_changed_without_fence) sums[3] = 1;
  if (misuse == Misuse::none) ptx::wgmma_fence();
  if (misuse == Misuse::registers_without_fence)
    ptx::wgmma<bf16, 32>(sums, a, good);
  else
    ptx::wgmma<bf16, 32>(sums, good, good);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
}

__global__ void __launch_bounds__(128, 1)
    misuse_kernel(Misuse misuse, const uint8_t* data, const __grid_constant__ TensorMap map) {
  WEFT_DYNAMIC_SHARED(uint8_t, tiles);
  __shared__ ptx::Barrier barrier, other;
  const bool first = threadIdx.x == 0;
  if (first) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  switch (misuse) {
    case Misuse::releases_more_registers:
      ptx::release_registers<40>();
      ptx::release_registers<48>();
      return;
    case Misuse::acquires_fewer_registers:
      ptx::acquire_registers<232>();
      return;
    case Misuse::barrier_zero:
      ptx::named_barrier_sync(0, 128);
      return;
    case Misuse::barrier_of_two_sizes:
      ptx::named_barrier_sync(3, threadIdx.x < 64 ? 128 : 96);
      return;
    case Misuse::waits_without_arriving:
      ptx::cluster_wait();
      return;
    case Misuse::arrives_twice_at_cluster:
      ptx::cluster_arrive();
      ptx::cluster_arrive();
      return;
    case Misuse::mbarrier_not_made:
      ptx::mbarrier_wait(&other, 0);
      return;
    case Misuse::mbarrier_written_over:
      if (first) barrier.state = 1;
      __syncthreads();
      ptx::mbarrier_wait(&barrier, 0);
      return;
    case Misuse::no_such_parity:
      ptx::mbarrier_wait(&barrier, 2);
      return;
    case Misuse::bulk_load_misaligned:
      if (first) ptx::bulk_load(tiles, data + 8, 64, &barrier);
      return;
    case Misuse::wrong_count_of_coordinates:
      if (first) ptx::tma_load(tiles, map, &barrier, 0, 0, 0);
      return;
    case Misuse::two_loads_to_one_place:
      if (first) {
        ptx::bulk_load(tiles, data, 64, &barrier);
        ptx::bulk_load(tiles + 48, data, 64, &barrier);
      }
      return;
    case Misuse::load_never_waited_for:
    case Misuse::map_of_freed_memory:
      if (first) {
        ptx::mbarrier_arrive_expect_tx(&barrier, 1024);
        ptx::tma_load(tiles, map, &barrier, 0, 0);
      }
      if (misuse == Misuse::map_of_freed_memory) ptx::mbarrier_wait(&barrier, 0);
      return;
    default:
      multiply(misuse, tiles);
  }
}

}  // namespace

void misuse(const Queue& queue, Misuse misuse, const void* data, const TensorMap& map) {
  launch(queue, "misuse", 1, 128, kShared, misuse_kernel, misuse, static_cast<const uint8_t*>(data), map);
}

}  // namespace weft::kernels::WEFT_DEVICE
