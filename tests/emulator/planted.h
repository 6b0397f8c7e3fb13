// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <string>

// Shared by the programs of planted faults. Each has kernels in a second source, for Hopper alone.

/// Launches a kernel of the second source; false: none has this name.
bool launch_hopper(const char* name, bool right, int* data);

constexpr size_t kDataBytes = 1 << 16;  ///< bytes of the kernels' data, which are 0 at first

/// main() of such a program: `launch(name, right, data)` launches the fault that the argument names, or with `_right`
/// after the name the repaired twin; false: none has this name.
template <class Launch>
int run_planted(int argc, char** argv, const char* what, const Launch& launch) {
  std::string name = argc > 1 ? argv[1] : "";
  const bool right = name.ends_with("_right");
  if (right) name.resize(name.size() - 6);
  int* data = nullptr;
  if (cudaMalloc(&data, kDataBytes) != cudaSuccess) return 1;
  cudaMemset(data, 0, kDataBytes);
  if (!launch(name, right, data) && !launch_hopper(name.c_str(), right, data)) {
    std::printf("no %s of this name\n", what);
    return 2;
  }
  const cudaError_t launched = cudaGetLastError(), status = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(launched != cudaSuccess ? launched : status));
  return launched == cudaSuccess && status == cudaSuccess ? 0 : 1;
}
