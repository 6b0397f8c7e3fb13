// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/hopper_gemm.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx_wgmma.cuh"

// The marks `// NAME` at the ends of lines are looked up by hopper_bugs.cpp: reports must name them.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kRows = 128, kColumns = 64, kDepth = 64, kStages = 2, kCluster = 2;
constexpr int kBytesA = kRows * kDepth * 2, kBytesB = kColumns * kDepth * 2, kBytesC = kRows * kColumns * 4;
constexpr int kSharedBytes = kStages * (kBytesA + kBytesB) + kBytesC;

__global__ void __launch_bounds__(384, 1)
    gemm_kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                const __grid_constant__ TensorMap map_c, int depth_tiles, HopperBug bug) {
  WEFT_DYNAMIC_SHARED(uint8_t, shared);
  __shared__ ptx::Barrier full[kStages], empty[kStages];
  uint8_t* const tiles_a = shared + (bug == HopperBug::misaligned_tile ? 512 : 0);
  uint8_t* const tiles_b = shared + kStages * kBytesA;
  float* const tile_c = reinterpret_cast<float*>(shared + kStages * (kBytesA + kBytesB));
  const int group = static_cast<int>(threadIdx.x) / 128, t = static_cast<int>(threadIdx.x) % 128;
  const int rank = ptx::cluster_rank();
  const int first_row = static_cast<int>(blockIdx.x) * kRows, first_column = static_cast<int>(blockIdx.y) * kColumns;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], 2 * kCluster);
    }
    if (bug != HopperBug::barriers_not_published) ptx::mbarrier_init_fence();
  }
  if (bug == HopperBug::no_cluster_sync)
    __syncthreads();
  else
    ptx::cluster_sync();
  if (group == 0) {
    ptx::release_registers<40>();
    if (t == 0)
      for (int i = 0; i < depth_tiles; ++i) {
        const int s = i % kStages;
        ptx::mbarrier_wait(&empty[s], (i / kStages + 1) % 2);
        const int expected = kBytesA + kBytesB - (bug == HopperBug::too_few_bytes ? 16 : 0);
        ptx::mbarrier_arrive_expect_tx(&full[s], expected);
        if (bug == HopperBug::too_many_arrivals) ptx::mbarrier_arrive(&full[s]);
        ptx::tma_load(tiles_a + s * kBytesA, map_a, &full[s], i * kDepth, first_row);  // load of a
        uint8_t* const half = tiles_b + s * kBytesB + rank * kBytesB / 2;
        const int column = first_column + rank * kColumns / 2;
        ptx::tma_load_multicast(half, map_b, &full[s], 3, i * kDepth, column);  // load of b
      }
  } else {
    ptx::acquire_registers<232>();
    float sums[kColumns / 2];
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) sums[i] = 0;
    for (int i = 0; i < depth_tiles; ++i) {
      const int s = i % kStages, parity = i / kStages % 2;
      if (bug != HopperBug::missing_wait)
        ptx::mbarrier_wait(&full[s], bug == HopperBug::wrong_phase ? 1 - parity : parity);  // wait for tiles
      if (bug != HopperBug::no_wgmma_fence) ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kDepth; k += 16) {
        const Swizzle swizzle = bug == HopperBug::wrong_swizzle ? Swizzle::none : Swizzle::bytes128;
        const uint8_t* const a = tiles_a + s * kBytesA + (group - 1) * kBytesA / 2;
        const uint64_t describe_a = ptx::wgmma_descriptor(a + k * 2, swizzle, 16, 1024);
        const uint64_t describe_b = ptx::wgmma_descriptor(tiles_b + s * kBytesB + k * 2, swizzle, 16, 1024);
        ptx::wgmma<bf16, kColumns>(sums, describe_a, describe_b);  // wgmma
      }
      ptx::wgmma_commit();
      if (bug == HopperBug::tile_overwritten_early && t < kCluster) ptx::mbarrier_arrive_cluster(&empty[s], t);
      if (bug != HopperBug::result_before_wait || i + 1 < depth_tiles) ptx::wgmma_wait<0>();
      if (bug == HopperBug::tile_overwritten_early) continue;
      if (t == rank) {  // who arrives at this block's barrier
        static_cast<void>(*reinterpret_cast<const volatile uint32_t*>(tiles_a + (s + 1) * kBytesA - 4));  // read of a
        if (bug != HopperBug::missing_proxy_fence_after_reads) ptx::fence_proxy_async();
      }
      if (bug == HopperBug::too_few_arrivals && group == 2) continue;
      if (t < kCluster) ptx::mbarrier_arrive_cluster(&empty[s], t);  // arrival at empty
    }
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) {
      const int row = (group - 1) * 64 + t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8;
      tile_c[row * kColumns + i / 4 * 8 + t % 4 * 2 + i % 2] = sums[i];  // write of c
    }
    if (bug == HopperBug::result_before_wait) ptx::wgmma_wait<0>();
    if (bug != HopperBug::missing_proxy_fence) ptx::fence_proxy_async();
    ptx::named_barrier_sync(1, 256);
    if (group == 1 && t == 0) {
      ptx::tma_store(map_c, tile_c, first_column, first_row);  // store of c
      ptx::tma_store_commit();
      if (bug == HopperBug::store_source_overwritten) tile_c[0] = -1;  // overwrites c
      if (bug != HopperBug::no_wait_for_the_store) ptx::tma_store_wait_read<0>();
    }
  }
  ptx::cluster_sync();
}

__global__ void sums_kernel(int* sums, int* ranks, const int* values, int cluster, HopperBug bug) {
  __shared__ int fixed[1];
  WEFT_DYNAMIC_SHARED(int, dynamic);
  const int block = static_cast<int>(blockIdx.x + gridDim.x * blockIdx.y), rank = ptx::cluster_rank();
  if (threadIdx.x == 0) {
    fixed[0] = values[block];
    dynamic[0] = 1000 * values[block];  // value of the block
  }
  if (bug != HopperBug::remote_read_too_early) ptx::cluster_sync();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int r = 0; r < cluster; ++r) {
      const int other = (rank + r) % cluster;
      sum += *ptx::cluster_map(dynamic, other);  // remote read
      sum += *ptx::cluster_map(fixed, other);
    }
    sums[block] = sum;
    ranks[block] = rank;
  }
  if (bug != HopperBug::exits_too_early) ptx::cluster_sync();
}

}  // namespace

void hopper_gemm(const Queue& queue, float* c, const bf16* a, const bf16* b, int m, int n, int k, HopperBug bug) {
  const auto matrix = [](const void* data, DType dtype, int rows, int columns, int box_rows, int box_columns,
                         Swizzle swizzle) {
    const int64_t pitch = columns * static_cast<int64_t>(size_of(dtype));
    return tiled_map("hopper_gemm", {data, dtype, 2, {columns, rows}, {pitch}, {box_columns, box_rows}, swizzle});
  };
  const TensorMap map_a = matrix(a, DType::bf16, m, k, kRows, kDepth, Swizzle::bytes128);
  const TensorMap map_b = matrix(b, DType::bf16, n, k, kColumns / kCluster, kDepth, Swizzle::bytes128);
  const TensorMap map_c = matrix(c, DType::f32, m, n, kRows, kColumns, Swizzle::none);
  const unsigned rows = static_cast<unsigned>((m + kRows - 1) / kRows + kCluster - 1) / kCluster * kCluster;
  const dim3 grid(rows, static_cast<unsigned>((n + kColumns - 1) / kColumns));
  launch_cluster(queue, "hopper_gemm", grid, 384, kSharedBytes, kCluster, gemm_kernel, map_a, map_b, map_c,
                 (k + kDepth - 1) / kDepth, bug);
}

void cluster_sums(const Queue& queue, int* sums, int* ranks, const int* values, int blocks_x, int blocks_y, int x,
                  int y, HopperBug bug) {
  launch_cluster(queue, "cluster_sums", dim3(static_cast<unsigned>(blocks_x), static_cast<unsigned>(blocks_y)), 32, 4,
                 dim3(static_cast<unsigned>(x), static_cast<unsigned>(y)), sums_kernel, sums, ranks, values, x * y,
                 bug);
}

}  // namespace weft::kernels::WEFT_DEVICE
