// SPDX-License-Identifier: Apache-2.0
// Misuses of Hopper's instructions through Weft's wrappers, named by the argument: wrapper_misuse.cmake has what the emulator must
// report, misuse_hopper.cu has others. `right` uses the same instructions rightly.
#include <cuda_runtime.h>

#include <cstdio>
#include <string>

#include "kernels/cuda/ptx/ptx_wgmma.cuh"
#include "kernels/cuda/ptx/tensor_map.cuh"

namespace {

using namespace weft::kernels::cuda;  // NOLINT: the wrappers

enum class Misuse { right, offset_too_large, wrong_base_offset, registers_without_fence };

template <Misuse misuse>
__global__ void __launch_bounds__(128) block_kernel(float* out, const __grid_constant__ TensorMap images) {
  __shared__ __align__(1024) uint8_t tile[8192];
  __shared__ ptx::Barrier barrier;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::mbarrier_init_fence();
    ptx::mbarrier_arrive_expect_tx(&barrier, 8192);
    ptx::tma_load_im2col(tile, images, &barrier, 0, 0, 0, 0, misuse == Misuse::offset_too_large ? 256 : 255, 255);
  }
  __syncthreads();
  ptx::mbarrier_wait(&barrier, 0);
  const uint64_t base_offset = uint64_t{misuse == Misuse::wrong_base_offset ? 2 : 0} << 49;
  const uint64_t operand = ptx::wgmma_descriptor(tile, Swizzle::bytes128, 16, 1024);
  float sums[16] = {};
  ptx::wgmma_fence();
  ptx::wgmma<weft::bf16, 32>(sums, operand | base_offset, operand);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  const uint32_t a[4] = {};
  if (misuse != Misuse::registers_without_fence) ptx::wgmma_fence();
  ptx::wgmma<weft::bf16, 32>(sums, a, operand);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  for (const float sum : sums) out[threadIdx.x] += sum;
}

/// Blocks read each other's shared memory; without the second barrier a block may have ended.
__global__ void __cluster_dims__(2, 1, 1) cluster_kernel(bool right, float* out) {
  __shared__ float mine;
  if (threadIdx.x == 0) mine = 1;
  ptx::cluster_sync();
  if (right || ptx::cluster_rank() == 0) {
    for (int i = 0; i < 1000; ++i) atomicAdd(out, 1.0f);
    out[64 + ptx::cluster_rank()] = *ptx::cluster_map(&mine, 1 - ptx::cluster_rank());
  }
  if (right) ptx::cluster_sync();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string asked = argc > 1 ? argv[1] : "";
  constexpr size_t kBytes = 64 * 64 * sizeof(weft::bf16);
  void* data = nullptr;
  float* out = nullptr;
  cudaMalloc(&data, kBytes);
  cudaMalloc(&out, 512);
  cudaMemset(data, 0, kBytes);
  cudaMemset(out, 0, 512);
  const TensorMap images =
      im2col_map("misuse", {data, weft::DType::bf16, 1, 8, 8, 64, 0, 0, 0, 0, 1, 1, 64, 64, Swizzle::bytes128});
  if (asked == "right") {
    block_kernel<Misuse::right><<<1, 128>>>(out, images);
    cluster_kernel<<<2, 32>>>(true, out);
  } else if (asked == "offset_too_large") {
    block_kernel<Misuse::offset_too_large><<<1, 128>>>(out, images);
  } else if (asked == "wrong_base_offset") {
    block_kernel<Misuse::wrong_base_offset><<<1, 128>>>(out, images);
  } else if (asked == "registers_without_fence") {
    block_kernel<Misuse::registers_without_fence><<<1, 128>>>(out, images);
  } else if (asked == "ends_before_it_is_read") {
    cluster_kernel<<<2, 32>>>(false, out);
  } else {
    return std::printf("unknown: %s\n", asked.c_str()), 2;
  }
  const cudaError_t status = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(status));
  return status == cudaSuccess ? 0 : 1;
}
