// SPDX-License-Identifier: Apache-2.0
#include "tests/hopper/hopper.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx/ptx_hopper.cuh"

// One kernel per instruction of Hopper: its effect on memory is compared with the host's reference.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 128;

__global__ void load_kernel(uint8_t* image, const __grid_constant__ TensorMap map, int rank, Place place, int bytes) {
  uint8_t* const tile = dynamic_shared<uint8_t>();
  __shared__ ptx::Barrier barrier;
  if (threadIdx.x == 0) {
    ptx::prefetch_tensor_map(map);
    ptx::mbarrier_init(&barrier, 1);
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto& at = place.at;
    ptx::mbarrier_arrive_expect_tx(&barrier, bytes);
    if (rank == 0)
      ptx::tma_load_im2col(tile, map, &barrier, at[0], at[1], at[2], at[3], static_cast<uint16_t>(place.offset[0]),
                           static_cast<uint16_t>(place.offset[1]));
    else if (rank == 2)
      ptx::tma_load(tile, map, &barrier, at[0], at[1]);
    else if (rank == 3)
      ptx::tma_load(tile, map, &barrier, at[0], at[1], at[2]);
    else
      ptx::tma_load(tile, map, &barrier, at[0], at[1], at[2], at[3]);
  }
  ptx::mbarrier_wait(&barrier, 0);
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += kThreads) image[i] = tile[i];
}

__global__ void store_kernel(const __grid_constant__ TensorMap map, int rank, Place place, const uint8_t* image,
                             int bytes) {
  uint8_t* const tile = dynamic_shared<uint8_t>();
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += kThreads) tile[i] = image[i];
  ptx::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (rank == 2)
      ptx::tma_store(map, tile, place.at[0], place.at[1]);
    else
      ptx::tma_store(map, tile, place.at[0], place.at[1], place.at[2]);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<0>();
  }
}

__global__ void stmatrix_kernel(uint16_t* out, const uint32_t* registers, bool transposed) {
  __shared__ __align__(16) uint16_t tile[4 * 64];
  const int lane = static_cast<int>(threadIdx.x);
  uint32_t r[4];
  for (int m = 0; m < 4; ++m) r[m] = registers[m * 32 + lane];
  if (transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     ptx::shared_address(tile + lane * 8)),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  else
    ptx::stmatrix_x4(tile + lane * 8, r);
  __syncwarp();
  for (int i = lane; i < 4 * 64; i += 32) out[i] = tile[i];
}

__global__ void __launch_bounds__(384, 1) talk_kernel(int* out) {
  __shared__ int box[2][128];
  const int group = static_cast<int>(threadIdx.x) / 128, t = static_cast<int>(threadIdx.x) % 128;
  constexpr int kFull = 1, kEmpty = 2;
  if (group == 0) {
    ptx::release_registers<40>();
    for (int i = 0; i < 4; ++i) {
      if (i > 0) ptx::named_barrier_sync(kEmpty, 384);
      for (int g = 0; g < 2; ++g) box[g][t] = 1000 * g + 10 * i + t;
      ptx::named_barrier_arrive(kFull, 384);
    }
    out[threadIdx.x] = ptx::elect_one() ? 1 : 0;
  } else {
    ptx::acquire_registers<232>();
    int sum = 0;
    for (int i = 0; i < 4; ++i) {
      ptx::named_barrier_sync(kFull, 384);
      sum += box[group - 1][127 - t];
      if (i < 3) ptx::named_barrier_arrive(kEmpty, 384);
    }
    out[threadIdx.x] = sum;
  }
}

}  // namespace

void load_box(const Queue& queue, uint8_t* image, const TensorMap& map, int rank, const Place& place, int bytes) {
  launch(queue, "load_box", 1, kThreads, static_cast<size_t>(bytes), load_kernel, image, map, rank, place, bytes);
}
void store_box(const Queue& queue, const TensorMap& map, int rank, const Place& place, const uint8_t* image,
               int bytes) {
  launch(queue, "store_box", 1, kThreads, static_cast<size_t>(bytes), store_kernel, map, rank, place, image, bytes);
}
void store_matrices(const Queue& queue, uint16_t* out, const uint32_t* registers, bool transposed) {
  launch(queue, "store_matrices", 1, 32, 0, stmatrix_kernel, out, registers, transposed);
}
void warpgroups_talk(const Queue& queue, int* out) { launch(queue, "warpgroups_talk", 1, 384, 0, talk_kernel, out); }

}  // namespace weft::kernels::cuda
