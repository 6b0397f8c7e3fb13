// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every file of the driver's entry points includes this first. cuda.h renames calls to their newest form (cuMemAlloc is
// cuMemAlloc_v2), here as in the programs.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "emulator/cuda/capture.h"
#include "emulator/cuda/copy.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/graph.h"
#include "emulator/cuda/kernels.h"
#include "emulator/cuda/launch.h"
#include "emulator/cuda/memory_calls.h"
#include "emulator/cuda/stream.h"
#include "emulator/machine/memory.h"

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

namespace emulator::cuda {

template <class F>
CUresult call(F&& body) {
  return CUresult(driver_call(static_cast<F&&>(body)));
}
inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
/// A copy by the driver's parameters. Errors: Error.
CopyWork copy_box(const CUDA_MEMCPY3D& p);
inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace emulator::cuda
