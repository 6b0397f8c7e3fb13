// SPDX-License-Identifier: Apache-2.0
// The parts of PyTorch that FlashAttention-2's forward pass uses.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

inline void expect_cuda(const cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "CUDA says: %s\n", cudaGetErrorName(status));
  std::exit(1);
}

#define C10_CUDA_CHECK(...) expect_cuda(__VA_ARGS__)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() expect_cuda(cudaGetLastError())
