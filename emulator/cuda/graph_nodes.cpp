// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/graph_nodes.h"

#include <fstream>

#include "emulator/cuda/condition.h"
#include "emulator/cuda/copy.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/memory_calls.h"
#include "emulator/machine/memory.h"

namespace emulator::cuda {
namespace {

const char* name_of(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel:
      return "kernel";
    case cudaGraphNodeTypeMemcpy:
      return "memcpy";
    case cudaGraphNodeTypeMemset:
      return "memset";
    case cudaGraphNodeTypeHost:
      return "host";
    case cudaGraphNodeTypeGraph:
      return "graph";
    case cudaGraphNodeTypeWaitEvent:
      return "wait";
    case cudaGraphNodeTypeEventRecord:
      return "record";
    case cudaGraphNodeTypeMemAlloc:
      return "alloc";
    case cudaGraphNodeTypeMemFree:
      return "free";
    case cudaGraphNodeTypeConditional:
      return "conditional";
    default:
      return "empty";
  }
}

}  // namespace

SharedWork kernel_node(const cudaKernelNodeParams& p) {
  LaunchRequest request;
  request.handle = p.func;
  request.grid = p.gridDim;
  request.block = p.blockDim;
  request.shared = p.sharedMemBytes;
  request.arguments = p.kernelParams;
  request.extra = p.extra;
  std::shared_ptr<const Work> work = make_launch(request, current_device());
  std::get<KernelWork>(const_cast<Work&>(*work).what).launch.stream = "a graph";
  return work;
}

SharedWork copy_node(const CopyWork& copy) { return make_work(copy, current_device()); }

SharedWork fill_node(const cudaMemsetParams& p) {
  require(p.elementSize == 1 || p.elementSize == 2 || p.elementSize == 4);
  return make_work(fill_box(p.dst, p.height > 1 ? p.pitch : p.width * p.elementSize, p.height, p.value, p.elementSize,
                            p.width, p.height, 1),
                   current_device());
}

SharedWork host_node(const cudaHostNodeParams& p) {
  require(p.fn != nullptr);
  return make_work(HostWork{p.fn, p.userData, nullptr}, current_device());
}

SharedWork child_node(cudaGraph_t handle) {
  const Lock lock = lock_state();
  require(!graph_of(handle).has_conditional_nodes(), cudaErrorNotSupported);
  std::shared_ptr<Graph> copy = graph_of(handle).clone();
  copy->child = true;
  return make_work(ChildWork{std::move(copy)}, current_device());
}

SharedWork alloc_node(cudaMemAllocNodeParams& p) {
  require(p.bytesize > 0 && p.poolProps.location.type == cudaMemLocationTypeDevice);
  const int device = Device::get(p.poolProps.location.id).ordinal();
  p.dptr = allocate(p.bytesize, MemoryKind::device, device);
  require(p.dptr != nullptr, cudaErrorMemoryAllocation);
  return make_work(AllocWork{p}, device);
}

SharedWork conditional_node(cudaConditionalNodeParams& p) {
  require(p.type == cudaGraphCondTypeIf      ? p.size == 1 || p.size == 2
          : p.type == cudaGraphCondTypeWhile ? p.size == 1
                                             : p.type == cudaGraphCondTypeSwitch && p.size > 0);
  const Lock lock = lock_state();
  ConditionalWork conditional{condition_of(p.handle), p.type, {}, {}};
  for (unsigned i = 0; i < p.size; ++i) {
    conditional.bodies.push_back(make_graph());
    conditional.handles.push_back(handle_of(*conditional.bodies.back()));
  }
  SharedWork work = make_work(std::move(conditional), current_device());
  p.phGraph_out = const_cast<cudaGraph_t*>(std::get<ConditionalWork>(work->what).handles.data());
  return work;
}

SharedWork any_node(cudaGraphNodeParams& p) {
  switch (p.type) {
    case cudaGraphNodeTypeKernel: {
      const cudaKernelNodeParamsV2& k = p.kernel;
      return kernel_node({k.func, k.gridDim, k.blockDim, k.sharedMemBytes, k.kernelParams, k.extra});
    }
    case cudaGraphNodeTypeMemcpy:
      return copy_node(copy_box(p.memcpy.copyParams));
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParamsV2& m = p.memset;
      return fill_node({m.dst, m.pitch, m.value, m.elementSize, m.width, m.height});
    }
    case cudaGraphNodeTypeHost:
      return host_node({p.host.fn, p.host.userData});
    case cudaGraphNodeTypeGraph:
      return child_node(p.graph.graph);
    case cudaGraphNodeTypeEmpty:
      return make_work(EmptyWork{}, current_device());
    case cudaGraphNodeTypeWaitEvent:
      return make_work(WaitWork{p.eventWait.event}, current_device());
    case cudaGraphNodeTypeEventRecord:
      return make_work(RecordWork{p.eventRecord.event}, current_device());
    case cudaGraphNodeTypeMemAlloc: {
      cudaMemAllocNodeParams alloc{};
      alloc.poolProps = p.alloc.poolProps;
      alloc.bytesize = p.alloc.bytesize;
      SharedWork work = alloc_node(alloc);
      p.alloc.dptr = alloc.dptr;
      return work;
    }
    case cudaGraphNodeTypeConditional:
      return conditional_node(p.conditional);
    case cudaGraphNodeTypeMemFree:
      return make_work(FreeWork{p.free.dptr}, current_device());
    default:
      fail(cudaErrorNotSupported, cat("graph nodes of type ", int(p.type), " are not emulated"));
  }
}

cudaGraphNode_t add_node(cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count, SharedWork work) {
  const cudaGraphNode_t node = graph_add(graph, dependencies, count, work);
  if (const auto* alloc = std::get_if<AllocWork>(&work->what)) {
    const Lock lock = lock_state();
    graph_of(graph).memory.push_back(graph_memory(alloc->said.dptr));
  }
  return node;
}

cudaKernelNodeParams kernel_params(const Node& node) {
  const KernelWork& kernel = work_in<KernelWork>(node);
  const ptx::Launch& launch = kernel.launch;
  return {const_cast<void*>(kernel.handle),
          dim3(launch.grid.x, launch.grid.y, launch.grid.z),
          dim3(launch.block.x, launch.block.y, launch.block.z),
          launch.dynamic_shared,
          const_cast<void**>(kernel.parameter_pointers.data()),
          nullptr};
}

cudaMemsetParams fill_params(const Node& node) {
  const FillWork& fill = work_in<FillWork>(node);
  return {fill.to, fill.pitch, fill.value, fill.element, fill.width, fill.height};
}

SharedWork with_attribute(const Node& node, const cudaLaunchAttribute& attribute) {
  const KernelWork& kernel = work_in<KernelWork>(node);
  const cudaKernelNodeParams p = kernel_params(node);
  LaunchRequest request;
  request.handle = p.func;
  request.grid = p.gridDim;
  request.block = p.blockDim;
  request.shared = p.sharedMemBytes;
  request.arguments = p.kernelParams;
  request.cooperative = kernel.launch.cooperative;
  if (kernel.launch.cluster.count() > 1) {
    request.cluster = dim3(kernel.launch.cluster.x, kernel.launch.cluster.y, kernel.launch.cluster.z);
  }
  read_attributes(&attribute, 1, request);
  return make_launch(request, node.work->device);
}

void write_dot(cudaGraph_t handle, const char* path) {
  const Lock lock = lock_state();
  const Graph& graph = graph_of(handle);
  std::ofstream file(path);
  require(bool(file), cudaErrorOperatingSystem);
  file << "digraph graph_0 {\n";
  for (const auto& node : graph.nodes) {
    file << "  n" << node->number << " [label=\"" << name_of(type_of(*node));
    if (const auto* kernel = std::get_if<KernelWork>(&node->work->what)) file << ' ' << kernel->function->kernel->name;
    file << "\"];\n";
    for (const Node* before : node->dependencies) file << "  n" << before->number << " -> n" << node->number << ";\n";
  }
  file << "}\n";
}

}  // namespace emulator::cuda
