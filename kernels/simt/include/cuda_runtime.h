// SPDX-License-Identifier: Apache-2.0
#pragma once
// The CUDA of the emulator: what <cuda_runtime.h> is to nvcc, for the host compiler. See kernels/simt/README.md.
// Everything lives in weft::emulator::api, so that it can be linked beside the real CUDA runtime.
#include <cassert>
#include <cstdint>
#include <cstdio>

#include "kernels/simt/atomics.h"
#include "kernels/simt/intrinsics.h"
#include "kernels/simt/kernel_api.h"
#include "kernels/simt/runtime_api.h"
#include "kernels/simt/vector_types.h"
#include "kernels/simt/warp.h"

#define __global__ __attribute__((unused))
#define __device__ __attribute__((unused))
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// Each OS thread runs one block at a time, so its thread-local storage is the block's static shared memory.
#define __shared__ static __thread

namespace weft::emulator::api {

// `const`, although the engine changes them at each switch: to a thread they never change, and the compiler may keep
// them in registers across barriers.
extern const __thread uint3 threadIdx asm("weft_simt_thread_index");
extern const __thread uint3 blockIdx asm("weft_simt_block_index");
extern const __thread dim3 blockDim asm("weft_simt_block_size");
extern const __thread dim3 gridDim asm("weft_simt_grid_size");
inline constexpr int warpSize = 32;

}  // namespace weft::emulator::api

using namespace weft::emulator::api;  // NOLINT: these names are global in CUDA C++
