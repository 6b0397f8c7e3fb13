// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include "emulator/cuda/error.h"
#include "emulator/cuda/graph.h"
#include "emulator/cuda/launch.h"

namespace emulator::cuda {

// Work from the parameters that programs pass for nodes. Errors: Error.
using SharedWork = std::shared_ptr<const Work>;
SharedWork kernel_node(const cudaKernelNodeParams& p);
SharedWork copy_node(const CopyWork& copy);
SharedWork fill_node(const cudaMemsetParams& p);
SharedWork host_node(const cudaHostNodeParams& p);
SharedWork child_node(cudaGraph_t graph);
/// `p.phGraph_out` is set.
SharedWork conditional_node(cudaConditionalNodeParams& p);
/// Any node. For an allocation, `p.alloc.dptr` is set.
SharedWork any_node(cudaGraphNodeParams& p);
/// Takes memory for an allocation node: `p.dptr`.
SharedWork alloc_node(cudaMemAllocNodeParams& p);
/// Adds the node and, of an allocation, gives the memory to the graph.
cudaGraphNode_t add_node(cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count, SharedWork work);

// And back. Errors: cudaErrorInvalidValue when the node is of another kind.
template <class T>
const T& work_in(const Node& node) {
  const T* const work = std::get_if<T>(&node.work->what);
  require(work != nullptr);
  return *work;
}
cudaKernelNodeParams kernel_params(const Node& node);
cudaMemsetParams fill_params(const Node& node);

/// This launch with one of its attributes changed.
SharedWork with_attribute(const Node& node, const cudaLaunchAttribute& attribute);
void write_dot(cudaGraph_t graph, const char* path);

}  // namespace emulator::cuda
