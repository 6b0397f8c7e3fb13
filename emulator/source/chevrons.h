// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/source/runtime_api.h"

namespace emulator::source::api {

/// What `kernel<<<grid, block, shared, stream>>>(arguments…)` becomes where the host compiler reads a .cu file
/// (cmake/launch_syntax.cmake): returns what takes the arguments. As on the device, cudaGetLastError() has the error.
template <class... P>
auto chevrons(void (*kernel)(P...), dim3 grid, dim3 block, size_t dynamic_shared = 0, cudaStream_t stream = nullptr) {
  return [=](P... arguments) {
    const cudaLaunchConfig_t config{grid, block, dynamic_shared, stream, nullptr, 0};
    cudaLaunchKernelEx(&config, kernel, arguments...);
  };
}

}  // namespace emulator::source::api
