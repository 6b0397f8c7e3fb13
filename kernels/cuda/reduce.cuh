// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

namespace weft::kernels::cuda {

inline constexpr unsigned kFullWarp = 0xffffffffu;

struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
/// Combines `value` over the kWidth lanes of each aligned group (all 32 by default); every lane gets the result. All
/// lanes in `mask` must call. T: 4 or 8 bytes.
template <int kWidth = 32, class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, Op op, unsigned mask = kFullWarp) {
  static_assert(kWidth >= 1 && kWidth <= 32 && (kWidth & (kWidth - 1)) == 0);
#pragma unroll
  for (int distance = kWidth / 2; distance > 0; distance /= 2)
    value = op(value, __shfl_xor_sync(mask, value, distance));
  return value;
}
template <class T>
__device__ __forceinline__ T warp_sum(T value, unsigned mask = kFullWarp) {
  return warp_reduce(value, Sum{}, mask);
}

/// Combines `value` over the block, in an order that depends only on the block's size; every thread gets the result.
/// All threads must call; the block has a multiple of 32 threads. Two barriers, 32 T of static shared memory.
template <class T, class Op>
__device__ __forceinline__ T block_reduce(T value, Op op, T identity) {
  __shared__ T partial[32];
  const int thread = static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  const int warps = static_cast<int>(blockDim.x * blockDim.y * blockDim.z) / 32;
  const int lane = thread % 32;
  value = warp_reduce(value, op);
  if (lane == 0) partial[thread / 32] = value;
  __syncthreads();
  value = warp_reduce(lane < warps ? partial[lane] : identity, op);
  __syncthreads();  // `partial` may be reused
  return value;
}
template <class T>
__device__ __forceinline__ T block_sum(T value) {
  return block_reduce(value, Sum{}, T(0));
}

}  // namespace weft::kernels::cuda
