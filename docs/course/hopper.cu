// SPDX-License-Identifier: Apache-2.0
// Unit 11 of the course: d = a b^T by TMA, mbarriers and wgmma, with a warp that only loads. docs/course/11_hopper.md
// reads it.
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>

#include "exercises/weft_ptx.h"
#include "kernels/cuda/ptx/tensor_map.cu"  // tiled_map: what TMA must know of a matrix

#ifndef PARITY
#define PARITY step / kStages % 2  // of the phase that ends when tile `step` is there
#endif

using namespace weft::kernels::cuda;

constexpr int kTile = 64, kLine = 128, kBytes = kTile * kLine, kStages = 2;  // 64 rows of 64 bf16, 128 bytes

/// Loads one tile, and writes the first number of each run of 16 bytes, as the runs lie in shared memory.
__global__ void layout(const __grid_constant__ TensorMap map, bf16* out) {
  __shared__ alignas(1024) bf16 tile[kBytes / 2];
  __shared__ ptx::Barrier full;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init_fence();
    ptx::mbarrier_arrive_expect_tx(&full, kBytes);
    ptx::tma_load(tile, map, &full, 0, 0);
  }
  __syncthreads();
  ptx::mbarrier_wait(&full, 0);
  out[threadIdx.x] = tile[threadIdx.x * 8];
}

__global__ void __launch_bounds__(160)
    product(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int steps) {
  __shared__ alignas(1024) unsigned char stage[kStages][2][kBytes];
  __shared__ ptx::Barrier full[kStages], empty[kStages];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], 128);
    }
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  if (thread >= 128) {  // the producer: one thread of the fifth warp
    for (int step = 0; thread == 128 && step < steps; ++step) {
      const int s = step % kStages;
      ptx::mbarrier_wait(&empty[s], (step / kStages + 1) % 2);
      ptx::mbarrier_arrive_expect_tx(&full[s], 2 * kBytes);
      ptx::tma_load(stage[s][0], a, &full[s], step * kTile, 0);
      ptx::tma_load(stage[s][1], b, &full[s], step * kTile, 0);
    }
    return;
  }
  float sum[32] = {};
  for (int step = 0; step < steps; ++step) {
    const int s = step % kStages;
    ptx::mbarrier_wait(&full[s], PARITY);
    ptx::wgmma_fence();
    for (int k = 0; k < kTile / 16; ++k) {
      ptx::wgmma<bf16, 64>(sum, ptx::wgmma_descriptor(stage[s][0] + k * 32, Swizzle::bytes128, 0, 8 * kLine),
                           ptx::wgmma_descriptor(stage[s][1] + k * 32, Swizzle::bytes128, 0, 8 * kLine));
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::mbarrier_arrive(&empty[s]);
  }
  for (int i = 0; i < 32; ++i)
    d[(thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * 64 + i / 4 * 8 + thread % 4 * 2 + i % 2] = sum[i];
}

int main() {
  constexpr int steps = 6, depth = steps * kTile;
  std::vector<bf16> a(kTile * depth), b(kTile * depth), runs(64);
  for (int i = 0; i < kTile * depth; ++i) {
    a[i] = static_cast<float>(i % depth / 8 % 8);  // number of the run in its line
    b[i] = static_cast<float>(i % 5 - 2);
  }
  bf16 *da, *db, *druns;
  float* dd;
  cudaMalloc(&da, a.size() * sizeof(bf16));
  cudaMalloc(&db, b.size() * sizeof(bf16));
  cudaMalloc(&druns, 64 * sizeof(bf16));
  cudaMalloc(&dd, kTile * kTile * sizeof(float));
  cudaMemcpy(da, a.data(), a.size() * sizeof(bf16), cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), b.size() * sizeof(bf16), cudaMemcpyHostToDevice);
  const auto map = [&](const void* matrix) {
    return tiled_map("hopper",
                     {matrix, weft::DType::bf16, 2, {depth, kTile}, {depth * 2}, {kTile, kTile}, Swizzle::bytes128});
  };
  layout<<<1, 64>>>(map(da), druns);
  cudaMemcpy(runs.data(), druns, 64 * sizeof(bf16), cudaMemcpyDeviceToHost);
  for (int line = 0; line < 8; ++line) {
    std::printf("line %d: runs", line);
    for (int i = 0; i < 8; ++i) std::printf(" %g", static_cast<float>(runs[line * 8 + i]));
    std::puts("");
  }
  product<<<1, 160>>>(map(da), map(db), dd, steps);
  std::vector<float> d(kTile * kTile);
  cudaMemcpy(d.data(), dd, d.size() * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < kTile * kTile; ++i) {
    float sum = 0;
    for (int k = 0; k < depth; ++k) sum += a[i / kTile * depth + k] * b[i % kTile * depth + k];
    wrong += d[i] != sum;
  }
  std::printf("%d of %d elements wrong\n", wrong, kTile * kTile);
  return wrong != 0;
}
