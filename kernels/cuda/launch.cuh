// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/error.h"
#include "kernels/runtime/queue.h"

// All kernel launches go through this header.

namespace weft::kernels::cuda {

using Grid = dim3;
using Block = dim3;

/// A launch's parameters, for hooks and errors.
struct Geometry {
  const char* name;
  dim3 grid, block;
  size_t dynamic_shared;
};

/// Makes the queue's device current, raises the kernel's limit of dynamic shared memory if needed, opens an NVTX range.
void begin_launch(const Queue& queue, const Geometry& geometry, const void* kernel);
/// Closes the range; throws weft::Error with the geometry when `status` is an error.
void end_launch(const Geometry& geometry, cudaError_t status);

/// launch() and launch_cluster(): `attributes` may be null.
template <class... Parameters, class... Arguments>
void launch_with(const Queue& queue, const Geometry& geometry, cudaLaunchAttribute* attributes, unsigned count,
                 void (*kernel)(Parameters...), Arguments&&... arguments) {
  begin_launch(queue, geometry, reinterpret_cast<const void*>(kernel));
  cudaLaunchConfig_t config{};
  config.gridDim = geometry.grid;
  config.blockDim = geometry.block;
  config.dynamicSmemBytes = geometry.dynamic_shared;
  config.stream = static_cast<cudaStream_t>(queue.stream);
  config.attrs = attributes;
  config.numAttrs = count;
  end_launch(geometry, cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

/// Enqueues `kernel<<<grid, block, dynamic_shared>>>(arguments…)`; a grid of size 0 is nothing to do.
/// Errors: weft::Error with the kernel's name, grid, block, shared bytes and the device's own text.
template <class... Parameters, class... Arguments>
void launch(const Queue& queue, const char* name, dim3 grid, dim3 block, size_t dynamic_shared,
            void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  launch_with(queue, {name, grid, block, dynamic_shared}, nullptr, 0, kernel, std::forward<Arguments>(arguments)...);
}

/// Like launch(), with the blocks in clusters of `cluster` blocks (at most 8), which divide the grid. Needs compute
/// capability 9.0.
template <class... Parameters, class... Arguments>
void launch_cluster(const Queue& queue, const char* name, dim3 grid, dim3 block, size_t dynamic_shared, dim3 cluster,
                    void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  launch_with(queue, {name, grid, block, dynamic_shared}, &attribute, 1, kernel, std::forward<Arguments>(arguments)...);
}

/// Blocks for a grid-stride loop over `n` elements: at most enough to fill the largest GPU several times.
inline unsigned blocks_for(int64_t n, int64_t per_block) {
  constexpr int64_t kMost = 4096;
  return static_cast<unsigned>(std::clamp<int64_t>((n + per_block - 1) / per_block, 0, kMost));
}

/// The block's dynamic shared memory, aligned to 1024 bytes.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char bytes[];
  return reinterpret_cast<T*>(bytes);
}

}  // namespace weft::kernels::cuda
