// SPDX-License-Identifier: Apache-2.0
#pragma once
// The CUDA of the emulator: <cuda_runtime.h> for the host compiler. See emulator/source/README.md.
// Everything lives in emulator::source::api, so that it can be linked beside the real CUDA runtime.
#include <cassert>
#include <cstdint>
#include <cstdio>

#include "emulator/source/atomics.h"
#include "emulator/source/intrinsics.h"
#include "emulator/source/kernel_api.h"
#include "emulator/source/runtime_api.h"
#include "emulator/source/vector_types.h"
#include "emulator/source/warp.h"

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

namespace emulator::source::api {

// `const`, although the engine changes them at each switch: to a thread they never change, and the compiler may keep
// them in registers across barriers.
extern const __thread uint3 threadIdx asm("weft_simt_thread_index");
extern const __thread uint3 blockIdx asm("weft_simt_block_index");
extern const __thread dim3 blockDim asm("weft_simt_block_size");
extern const __thread dim3 gridDim asm("weft_simt_grid_size");
inline constexpr int warpSize = 32;

}  // namespace emulator::source::api

using namespace emulator::source::api;  // NOLINT: these names are global in CUDA C++
