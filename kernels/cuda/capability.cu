// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/capability.cuh"

#include <cuda_runtime.h>

#include <array>
#include <atomic>

#include "kernels/error.h"
#include "kernels/runtime/capability_scope.h"

namespace weft::kernels::cuda {

namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  const cudaError_t status = cudaDeviceGetAttribute(&value, which, device);
  if (status == cudaSuccess) return value;
  cudaGetLastError();  // clears the error for the next call
  fail("cudaDeviceGetAttribute: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")");
}

int ask(int device) {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
         attribute(cudaDevAttrComputeCapabilityMinor, device);
}

}  // namespace

int compute_capability(const Queue& queue) {
  const int device = queue.device.index;
  static std::array<std::atomic<int>, 64> known{};
  if (device < 0 || device >= static_cast<int>(known.size())) return limited_capability(ask(device));
  std::atomic<int>& cached = known[static_cast<size_t>(device)];
  if (cached == 0) cached = ask(device);
  return limited_capability(cached);
}

bool has_wgmma(const Queue& queue) { return compute_capability(queue) / 10 == 9; }

int multiprocessors(const Queue& queue) {
  return limited_multiprocessors(attribute(cudaDevAttrMultiProcessorCount, queue.device.index));
}

}  // namespace weft::kernels::cuda
