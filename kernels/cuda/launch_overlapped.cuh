// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/launch.cuh"
#include "kernels/runtime/variants.h"

namespace weft::kernels::cuda {

/// Like launch_cluster(), for kernels in which every thread calls ptx::wait_for_previous_kernel() before its first
/// access to global memory. With the variant `pdl` the kernel may begin before the previous kernel of the stream ends
/// (programmatic dependent launch); the result is the same.
template <class... Parameters, class... Arguments>
void launch_overlapped(const Queue& queue, const char* name, dim3 grid, dim3 block, size_t dynamic_shared, dim3 cluster,
                       void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = cluster.x;
  attributes[0].val.clusterDim.y = cluster.y;
  attributes[0].val.clusterDim.z = cluster.z;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  launch_with(queue, {name, grid, block, dynamic_shared}, attributes, takes(Variant::pdl) ? 2 : 1, kernel,
              std::forward<Arguments>(arguments)...);
}

}  // namespace weft::kernels::cuda
