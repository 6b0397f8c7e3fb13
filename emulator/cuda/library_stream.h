// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime_api.h>

#include "emulator/cuda/library_operand.h"
#include "emulator/machine/fault.h"

// CUDA 12.8's: an older runtime has none.
extern "C" cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) __attribute__((weak));

namespace emulator::cuda {

/// Misuse: the stream is of another device than `device`, the handle's. Returns the runtime's error.
inline cudaError_t require_stream(const LibraryCall& call, cudaStream_t stream, int device) {
  const bool is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  int other = device;
  const cudaError_t code =
      is_default || !cudaStreamGetDevice ? cudaGetDevice(&other) : cudaStreamGetDevice(stream, &other);
  if (code == cudaSuccess && other != device)
    misused(call, cat("the handle is of device ", device, ", the stream of device ", other));
  return code;
}

}  // namespace emulator::cuda
