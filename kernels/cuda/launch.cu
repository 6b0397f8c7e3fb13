// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch.cuh"

#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>

#include "kernels/cuda/capability.cuh"
#include "kernels/runtime/sticky_error.h"

namespace weft::kernels::cuda {

namespace {

/// The dynamic shared memory that every kernel may use without opting in.
constexpr size_t kDefaultShared = 48 << 10;

std::string describe(const Geometry& g) {
  return str(g.name, ": grid (", g.grid.x, ",", g.grid.y, ",", g.grid.z, "), block (", g.block.x, ",", g.block.y, ",",
             g.block.z, "), ", g.dynamic_shared, " bytes of dynamic shared memory: ");
}

/// The hint for a failed launch on the current device: the GPU and the cure if the program has no code for it; how to
/// find the kernel that caused an asynchronous error; or nothing.
std::string hint(cudaError_t status) {
  if (status != cudaErrorNoKernelImageForDevice && status != cudaErrorInvalidDeviceFunction) return sticky_error_hint(status);
  Queue queue;
  if (cudaGetDevice(&queue.device.index) != cudaSuccess) return "";
  const int capability = compute_capability(queue);
  return str(": GPU ", queue.device.index, " has compute capability ", capability / 10, '.', capability % 10,
             capability < 80 ? "; Weft needs 8.0 (A100) or later"
                             : str(", for which this build has no code: add ", capability, " to WEFT_CUDA_ARCHITECTURES"));
}

/// Raises the limit once per kernel, device and size: the driver call takes about a microsecond.
void raise_shared_limit(const Geometry& geometry, const void* kernel, int device) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, size_t> raised;
  std::lock_guard lock(mutex);
  size_t& limit = raised[{kernel, device}];
  if (limit >= geometry.dynamic_shared) return;
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  static_cast<int>(geometry.dynamic_shared));
  if (status != cudaSuccess) {
    cudaGetLastError();
    fail(describe(geometry), "the device allows less dynamic shared memory: ", cudaGetErrorString(status),
         hint(status));
  }
  limit = geometry.dynamic_shared;
}

}  // namespace

void begin_launch(const Queue& queue, const Geometry& geometry, const void* kernel) {
  if (const cudaError_t status = cudaSetDevice(queue.device.index); status != cudaSuccess) {
    cudaGetLastError();
    fail(describe(geometry), "device ", queue.device, ": ", cudaGetErrorString(status), sticky_error_hint(status));
  }
  if (geometry.dynamic_shared > kDefaultShared) raise_shared_limit(geometry, kernel, queue.device.index);
  nvtxRangePushA(geometry.name);
}

void end_launch(const Geometry& geometry, cudaError_t status) {
  nvtxRangePop();
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error for the next call
  fail(describe(geometry), cudaGetErrorString(status), " (", cudaGetErrorName(status), ")", hint(status));
}

}  // namespace weft::kernels::cuda
