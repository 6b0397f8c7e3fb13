// SPDX-License-Identifier: Apache-2.0
// Planted misuses of misuse.cu that need compute capability 9.0: registers of warpgroups, mbarriers, bulk copies,
// wgmma, clusters.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>

#include "tests/emulator/hopper.cuh"
#include "tests/emulator/planted.h"

namespace {

PLANTED(Misuse, load_at_exit, store_at_exit, mbarrier_not_made, mbarrier_written_over, mbarrier_not_fenced,
        no_such_parity, too_few_bytes, too_few_arrivals, too_many_arrivals, load_misaligned, two_loads_to_one_place,
        wgmma_at_exit, wgmma_without_fence, wgmma_operand_out_of_bounds, sums_changed_without_fence,
        sums_written_before_wait, wrong_count_of_coordinates, map_of_freed_memory, releases_more_registers,
        acquires_fewer_registers, registers_by_one_warp, registers_of_two_sizes, registers_above_the_file,
        cluster_wait_without_arriving, cluster_arrive_twice);
constexpr int kThreads = 128;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

constexpr unsigned kBytes = kThreads * sizeof(int);
using namespace hopper;

template <int kRegisters>
__device__ void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ void acquire_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

__global__ void block_kernel(Misuse misuse, bool right, int* data) {
  __shared__ alignas(128) int tile[1024];
  __shared__ alignas(8) unsigned long long barriers[2];
  const int t = static_cast<int>(threadIdx.x);
  const unsigned barrier = shared_address(barriers), other = shared_address(barriers + 1);
  if (t == 0) {
    init_unfenced(barrier,
                  misuse == Misuse::too_few_arrivals || (misuse == Misuse::two_loads_to_one_place && !right) ? 2 : 1);
    if (right || misuse != Misuse::mbarrier_not_fenced)
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  switch (misuse) {
    case Misuse::load_at_exit:
    case Misuse::mbarrier_not_fenced:
      if (t == 0) load(tile, data, kBytes, barrier);
      if (right || misuse != Misuse::load_at_exit) wait(barrier, 0);
      return;
    case Misuse::store_at_exit:
      tile[t] = t;
      proxy_fence();
      __syncthreads();
      if (t == 0) {
        store(data, tile, kBytes);
        if (right) wait_until_read<0>();
      }
      return;
    case Misuse::mbarrier_not_made:
      if (t == 0) {
        if (right) init(other, 1);
        arrive(other);
      }
      return;
    case Misuse::mbarrier_written_over:
      if (t == 0 && !right) barriers[0] = 1;
      __syncthreads();
      if (t == 0) arrive(barrier);
      wait(barrier, 0);
      return;
    case Misuse::no_such_parity:
      if (t == 0) arrive(barrier);
      wait(barrier, right ? 0 : 2);
      return;
    case Misuse::too_few_bytes:
      if (t == 0) {
        load(tile, data, kBytes, barrier);
        if (!right) asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(barrier) : "memory");
      }
      wait(barrier, 0);
      return;
    case Misuse::too_few_arrivals:
      if (t == 0 || (t == 1 && right)) arrive(barrier);
      wait(barrier, 0);
      return;
    case Misuse::too_many_arrivals:
      // Two arrivals in one instruction: the mbarrier waits for one.
      if (t == 0)
        asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0], %1; }" ::"r"(barrier),
                     "r"(right ? 1 : 2)
                     : "memory");
      return;
    case Misuse::load_misaligned:
      if (t == 0) load(tile, data + (right ? 4 : 2), kBytes, barrier);
      wait(barrier, 0);
      return;
    case Misuse::two_loads_to_one_place:
      if (t == 0) load(tile, data, kBytes, barrier);
      if (right) {
        wait(barrier, 0);
        __syncthreads();
      }
      if (t == 0) load(tile + 64, data, kBytes, barrier);
      wait(barrier, right ? 1 : 0);
      return;
    default:
      return;
  }
}

__global__ void __launch_bounds__(kThreads, 1) wgmma_kernel(Misuse misuse, bool right, int* data) {
  __shared__ alignas(128) int tiles[1024];
  const int t = static_cast<int>(threadIdx.x);
  for (int i = t; i < 1024; i += kThreads) tiles[i] = 0;
  proxy_fence();
  __syncthreads();
  float sums[4] = {};
  if (misuse == Misuse::wgmma_without_fence && !right) {
    const unsigned long long matrix =
        static_cast<unsigned long long>((shared_address(tiles) & 0x3ffff) >> 4) | 8ull << 16 | 16ull << 32;
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;\n\t"
        "wgmma.commit_group.sync.aligned;"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "l"(matrix)
        : "memory");
  } else if (misuse == Misuse::sums_changed_without_fence || misuse == Misuse::sums_written_before_wait) {
    // In one statement, so that the sums have the same registers.
    const unsigned long long matrix =
        static_cast<unsigned long long>((shared_address(tiles) & 0x3ffff) >> 4) | 8ull << 16 | 16ull << 32;
#define MULTIPLY "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;\n\t"
#define COMMIT "wgmma.commit_group.sync.aligned;\n\t"
#define WAIT "wgmma.wait_group.sync.aligned 0;\n\t"
#define FENCE "wgmma.fence.sync.aligned;\n\t"
#define CHANGE "mov.f32 %3, 0f3f800000;\n\t"
#define SUMS : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "l"(matrix) : "memory"
    if (right)
      asm volatile(FENCE MULTIPLY COMMIT WAIT CHANGE FENCE MULTIPLY COMMIT WAIT SUMS);
    else if (misuse == Misuse::sums_changed_without_fence)
      asm volatile(FENCE MULTIPLY COMMIT WAIT CHANGE MULTIPLY COMMIT WAIT SUMS);
    else
      asm volatile(FENCE MULTIPLY COMMIT CHANGE WAIT SUMS);
  } else {
    multiply(tiles + (misuse == Misuse::wgmma_operand_out_of_bounds && !right ? 1000 : 0), tiles + 512, sums);
  }
  if (right || misuse != Misuse::wgmma_at_exit) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    data[t] = static_cast<int>(sums[0] + sums[1] + sums[2] + sums[3]);
  }
}

__global__ void tensor_kernel(Misuse misuse, bool right, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[1024];
  __shared__ alignas(8) unsigned long long barriers[1];
  const unsigned barrier = shared_address(barriers);
  if (threadIdx.x == 0) {
    init(barrier, 1);
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], 1024; }" ::"r"(barrier)
                 : "memory");
    if (misuse == Misuse::wrong_count_of_coordinates && !right)
      asm volatile(
          "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2, %2}], "
          "[%3];" ::"r"(shared_address(tile)),
          "l"(&map), "r"(0), "r"(barrier)
          : "memory");
    else
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], "
          "[%3];" ::"r"(shared_address(tile)),
          "l"(&map), "r"(0), "r"(barrier)
          : "memory");
    wait(barrier, 0);
  }
}

/// A thread starts with 248 registers, or 256.
__global__ void __launch_bounds__(kThreads, 1) registers_kernel(Misuse misuse, bool right) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  switch (misuse) {
    case Misuse::releases_more_registers:
      release_registers<40>();
      __syncthreads();
      if (right)
        release_registers<32>();
      else
        release_registers<48>();
      return;
    case Misuse::acquires_fewer_registers:
      if (right) release_registers<40>();
      __syncthreads();
      acquire_registers<232>();
      return;
    case Misuse::registers_by_one_warp:
      if (warp == 0 || right) release_registers<40>();
      return;
    case Misuse::registers_of_two_sizes:
      if (warp == 0 && !right)
        release_registers<32>();
      else
        release_registers<40>();
      return;
    default:
      return;
  }
}

/// Three warpgroups start with 168 registers a thread: 64512 in all.
__global__ void __launch_bounds__(3 * kThreads, 1) three_groups_kernel(bool right) {
  if (threadIdx.x < kThreads)
    release_registers<40>();
  else if (right)
    acquire_registers<232>();  // 128 x 40 + 256 x 232 = 64512
  else
    acquire_registers<240>();
  __syncthreads();
}

__global__ void __cluster_dims__(2, 1, 1) cluster_kernel(Misuse misuse, bool right) {
  if (right || misuse == Misuse::cluster_arrive_twice) asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  if (!right && misuse == Misuse::cluster_arrive_twice) asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

#else

__global__ void block_kernel(Misuse, bool, int*) {}
__global__ void wgmma_kernel(Misuse, bool, int*) {}
__global__ void tensor_kernel(Misuse, bool, const __grid_constant__ CUtensorMap) {}
__global__ void registers_kernel(Misuse, bool) {}
__global__ void three_groups_kernel(bool) {}
__global__ void cluster_kernel(Misuse, bool) {}

#endif

/// 32 x 8 ints of a tensor of 32 x 16.
CUtensorMap map_of(void* memory) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
  CUtensorMap map{};
  const cuuint64_t sizes[] = {32, 16}, strides[] = {128};
  const cuuint32_t box[] = {32, 8}, steps[] = {1, 1};
  const CUresult status = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found)(
      &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, memory, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) std::printf("no tensor map\n");
  return map;
}

}  // namespace

bool launch_hopper(const char* name, bool right, int* data) {
  const int number = planted_number(kPlanted, name);
  if (number < 0) return false;
  const auto misuse = static_cast<Misuse>(number);
  if (misuse >= Misuse::cluster_wait_without_arriving) {
    cluster_kernel<<<2, 32>>>(misuse, right);
  } else if (misuse == Misuse::registers_above_the_file) {
    three_groups_kernel<<<1, 3 * kThreads>>>(right);
  } else if (misuse >= Misuse::releases_more_registers) {
    registers_kernel<<<1, kThreads>>>(misuse, right);
  } else if (misuse >= Misuse::wrong_count_of_coordinates) {
    void* tensor = nullptr;
    cudaMalloc(&tensor, 32 * 16 * sizeof(int));
    cudaMemset(tensor, 0, 32 * 16 * sizeof(int));
    const CUtensorMap map = map_of(tensor);
    if (misuse == Misuse::map_of_freed_memory && !right) cudaFree(tensor);
    tensor_kernel<<<1, 32>>>(misuse, right, map);
  } else if (misuse >= Misuse::wgmma_at_exit) {
    wgmma_kernel<<<1, kThreads>>>(misuse, right, data);
  } else {
    block_kernel<<<1, kThreads>>>(misuse, right, data);
  }
  return true;
}
