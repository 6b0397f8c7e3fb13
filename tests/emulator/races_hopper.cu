// SPDX-License-Identifier: Apache-2.0
// Planted races of races.cu that need compute capability 9.0: mbarriers, bulk copies, wgmma, clusters.
#include <cuda_runtime.h>

#include "tests/emulator/hopper.cuh"
#include "tests/emulator/planted.h"

namespace {

PLANTED(Race, mbarrier_without_wait, mbarrier_relaxed_arrival, mbarrier_not_published, copy_told_to_nobody,
        load_without_wait, load_waited_for_by_one, load_overwrites_what_is_read, load_without_proxy_fence,
        load_over_a_write_without_proxy_fence, store_without_proxy_fence, store_source_overwritten,
        store_waits_for_too_few, store_result_too_early, wgmma_without_proxy_fence, wgmma_operand_overwritten,
        wgmma_reads_rows_of_others, wgmma_load_not_awaited_by_all, wgmma_not_awaited_by_all,
        wgmma_wait_skipped_by_one_warp, stores_of_two_tiles, remote_write_too_early, remote_read_too_early,
        cluster_relaxed_arrival);

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

constexpr int kThreads = 128;
constexpr unsigned kBytes = kThreads * sizeof(int);
using namespace hopper;

__global__ void block_kernel(Race race, bool right, int* data) {
  __shared__ alignas(128) int tile[1024];
  __shared__ alignas(8) unsigned long long barriers[2];
  const int t = static_cast<int>(threadIdx.x);
  const unsigned barrier = shared_address(barriers), other = shared_address(barriers + 1);
  const bool by_all = race == Race::mbarrier_without_wait || race == Race::mbarrier_relaxed_arrival ||
                      race == Race::mbarrier_not_published || race == Race::copy_told_to_nobody;
  if (t == 0) {
    init(barrier, by_all ? kThreads : 1);
    init(other, 1);
  }
  if (right || race != Race::mbarrier_not_published) __syncthreads();
  switch (race) {
    case Race::mbarrier_without_wait:
      tile[t] = data[t];
      arrive(barrier);
      if (right) wait(barrier, 0);
      data[t] = tile[kThreads - 1 - t];
      return;
    case Race::mbarrier_relaxed_arrival:
      tile[t] = data[t];
      if (right)
        arrive(barrier);
      else
        arrive_relaxed(barrier);
      wait(barrier, 0);
      data[t] = tile[kThreads - 1 - t];
      return;
    case Race::mbarrier_not_published:
      arrive(barrier);
      wait(barrier, 0);
      return;
    case Race::copy_told_to_nobody:
      asm volatile(
          "cp.async.ca.shared.global [%0], [%1], 4;\n\t"
          "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%2];" ::"r"(shared_address(tile + t)),
          "l"(data + t), "r"(barrier)
          : "memory");
      if (right) wait(barrier, 0);
      data[256 + t] = tile[kThreads - 1 - t];
      wait(barrier, 0);
      return;
    case Race::load_without_wait:
      if (t == 0) load(tile, data, kBytes, barrier);
      if (right) wait(barrier, 0);
      data[256 + t] = tile[t];
      wait(barrier, 0);
      return;
    case Race::load_waited_for_by_one:
      if (t == 0) {
        load(tile, data, kBytes, barrier);
        wait(barrier, 0);
      }
      if (right)
        __syncthreads();
      else
        __syncwarp();
      data[256 + t] = tile[t];
      return;
    case Race::load_overwrites_what_is_read:
      tile[t] = t;
      __syncthreads();
      data[256 + t] = tile[kThreads - 1 - t];
      proxy_fence();
      if (right) __syncthreads();
      if (t == 0) load(tile, data, kBytes, barrier);
      wait(barrier, 0);
      return;
    case Race::load_without_proxy_fence:
      if (t == 0) load(tile, data, kBytes, barrier);
      wait(barrier, 0);
      data[256 + t] = tile[kThreads - 1 - t];
      if (right) proxy_fence();
      __syncthreads();
      if (t == 0) load(tile, data + kThreads, kBytes, other);
      wait(other, 0);
      return;
    case Race::load_over_a_write_without_proxy_fence:
      tile[t] = t;
      __syncthreads();
      if (t == 0) {
        if (right) proxy_fence();  // fences all threads' writes, which it knows
        load(tile, data, kBytes, barrier);
      }
      wait(barrier, 0);
      return;
    case Race::store_without_proxy_fence:
      tile[t] = t;
      if (right) proxy_fence();
      __syncthreads();
      if (t == 0) {
        store(data, tile, kBytes);
        wait_until_read<0>();
      }
      return;
    case Race::store_source_overwritten:
      tile[t] = t;
      proxy_fence();
      __syncthreads();
      if (t == 0) {
        store(data, tile, kBytes);
        if (right) wait_until_read<0>();
      }
      __syncthreads();
      tile[t] = -1;
      return;
    case Race::store_waits_for_too_few:
      for (int i = 0; i < 4; ++i) tile[i * kThreads + t] = t;
      proxy_fence();
      __syncthreads();
      if (t == 0) {
        for (int i = 0; i < 2; ++i) store(data + i * kThreads, tile + i * kThreads, kBytes);
        if (right)
          wait_until_read<0>();
        else
          wait_until_read<1>();
      }
      __syncthreads();
      tile[t] = -1;  // the first store has read this value
      tile[kThreads + t] = -1;
      return;
    case Race::store_result_too_early:
      tile[t] = t;
      proxy_fence();
      __syncthreads();
      if (t == 0) {
        store(data, tile, kBytes);
        if (right)
          asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        else
          wait_until_read<0>();
        data[256] = data[3];
      }
      return;
    case Race::wgmma_without_proxy_fence:
    case Race::wgmma_operand_overwritten: {
      float sums[4] = {};
      for (int i = t; i < 1024; i += kThreads) tile[i] = 0;
      if (right || race != Race::wgmma_without_proxy_fence) proxy_fence();
      __syncthreads();
      multiply(tile, tile + 512, sums);
      if (right || race != Race::wgmma_operand_overwritten)
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      __syncthreads();
      tile[t] = 1;
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      data[t] = static_cast<int>(sums[0] + sums[1] + sums[2] + sums[3]);
      return;
    }
    case Race::wgmma_reads_rows_of_others: {
      // Warp w of a warpgroup reads rows 16 w to 16 w + 15 of a, here integers 128 w to 128 w + 127: its own writes
      // need no barrier of the warpgroup.
      float sums[4] = {};
      if (t < 64) tile[512 + t] = 0;
      proxy_fence();
      __syncthreads();
      const int rows = right ? t / 32 : (t / 32 + 1) % 4;
      for (int i = t % 32; i < 128; i += 32) tile[rows * 128 + i] = 0;
      proxy_fence();
      __syncwarp();
      multiply(tile, tile + 512, sums);
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      data[t] = static_cast<int>(sums[0] + sums[1] + sums[2] + sums[3]);
      return;
    }
    case Race::wgmma_load_not_awaited_by_all: {
      float sums[4] = {};
      __shared__ volatile int landed;
      landed = 0;
      for (int i = t; i < 512; i += kThreads) tile[i] = 0;
      proxy_fence();
      __syncthreads();
      if (t == 0) load(tile + 512, data, 256, barrier);
      if (right || t < 96) wait(barrier, 0);
      // The last warp comes last, by a flag that orders nothing else.
      if (t == 0) landed = 1;
      while (t >= 96 && landed == 0) {
      }
      __syncwarp();
      multiply(tile, tile + 512, sums);
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      data[256 + t] = static_cast<int>(sums[0] + sums[1] + sums[2] + sums[3]);
      return;
    }
    case Race::wgmma_not_awaited_by_all: {
      float sums[4] = {};
      for (int i = t; i < 1024; i += kThreads) tile[i] = 0;
      proxy_fence();
      __syncthreads();
      multiply(tile, tile + 512, sums);
      if (right || t < 96) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      tile[t / 32 * 128 + t % 32] = 1;  // in the warp's own rows
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      data[t] = static_cast<int>(sums[0] + sums[1] + sums[2] + sums[3]);
      return;
    }
    case Race::wgmma_wait_skipped_by_one_warp: {
      float sums[4] = {};
      for (int i = t; i < 1024; i += kThreads) tile[i] = 0;
      proxy_fence();
      __syncthreads();
      multiply(tile, tile + 512, sums);
      if (right || t >= 32) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      data[t] = static_cast<int>(sums[0] + sums[1] + sums[2] + sums[3]);
      return;
    }
    case Race::stores_of_two_tiles:
      tile[t] = 0;
      proxy_fence();
      __syncthreads();
      // A whole warp may store one tile; lanes that store two to one address race.
      if (t < 32) {
        store(data, tile + (right ? 0 : t % 2 * 32), 128);
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      }
      return;
    default:
      return;
  }
}

__global__ void __cluster_dims__(2, 1, 1) cluster_kernel(Race race, bool right, int* data) {
  __shared__ int tile[32];
  const int t = static_cast<int>(threadIdx.x);
  unsigned rank, remote;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(tile + t)), "r"(1 - rank));
  const auto meet = [] {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  };
  meet();
  if (race == Race::remote_read_too_early) {
    tile[t] = t;
    if (right)
      meet();
    else
      __syncthreads();
    int value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(remote) : "memory");
    data[rank * 32 + t] = value;
  } else {
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(t) : "memory");
    if (right)
      meet();
    else if (race == Race::cluster_relaxed_arrival)
      asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    else
      __syncthreads();
    data[rank * 32 + t] = tile[t];
  }
  meet();
}

#else

__global__ void block_kernel(Race, bool, int*) {}
__global__ void cluster_kernel(Race, bool, int*) {}

#endif

}  // namespace

bool launch_hopper(const char* name, bool right, int* data) {
  const int number = planted_number(kPlanted, name);
  if (number < 0) return false;
  const auto race = static_cast<Race>(number);
  if (race >= Race::remote_write_too_early)
    cluster_kernel<<<2, 32>>>(race, right, data);
  else
    block_kernel<<<1, 128>>>(race, right, data);
  return true;
}
