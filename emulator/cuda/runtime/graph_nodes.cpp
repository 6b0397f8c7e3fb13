// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs, and code shared with the driver.
#include "emulator/cuda/graph_nodes.h"

#include <algorithm>
#include <cstring>

#include "emulator/cuda/runtime/call.h"

using namespace emulator;
using namespace emulator::cuda;

#define API(name) cudaError_t cuda##name
#define API_RESULT cudaError_t
#define API_EDGE cudaGraphEdgeData
#define API_CALL runtime_call
#include "emulator/cuda/twins.inc"

namespace {

SharedWork copy_1d(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  return copy_node(copy_bytes(to, from, count, kind));
}

}  // namespace

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* p) {
  return add(node, graph, dependencies, count, [&] { return any_node(*p); });
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaKernelNodeParams* p) {
  return add(node, graph, dependencies, count, [&] { return kernel_node(*p); });
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemcpy3DParms* p) {
  return add(node, graph, dependencies, count, [&] { return copy_node(copy_box(*p)); });
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return add(node, graph, dependencies, count, [&] { return copy_1d(to, from, bytes, kind); });
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count, const void* symbol,
                                           const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return add(node, graph, dependencies, count,
             [&] { return copy_1d(in_symbol(symbol, offset, bytes), from, bytes, kind); });
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count, void* to,
                                             const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return add(node, graph, dependencies, count,
             [&] { return copy_1d(to, in_symbol(symbol, offset, bytes), bytes, kind); });
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemsetParams* p) {
  return add(node, graph, dependencies, count, [&] { return fill_node(*p); });
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 size_t count, const cudaHostNodeParams* p) {
  return add(node, graph, dependencies, count, [&] { return host_node(*p); });
}
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, cudaMemAllocNodeParams* p) {
  return add(node, graph, dependencies, count, [&] { return alloc_node(*p); });
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                    size_t count, void* memory) {
  return add(node, graph, dependencies, count, [&] { return make_work(FreeWork{memory}, current_device()); });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType* type) {
  return get(handle, [&](const Node& node) { *type = type_of(node); });
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t handle, cudaKernelNodeParams* p) {
  return get(handle, [&](const Node& node) { *p = kernel_params(node); });
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t handle, cudaMemcpy3DParms* p) {
  return get(handle, [&](const Node& node) { *p = work_in<CopyWork>(node).said; });
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t handle, cudaMemsetParams* p) {
  return get(handle, [&](const Node& node) { *p = fill_params(node); });
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t handle, cudaHostNodeParams* p) {
  return get(handle, [&](const Node& node) {
    const HostWork& host = work_in<HostWork>(node);
    *p = {host.function, host.data};
  });
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t handle, cudaMemAllocNodeParams* p) {
  return get(handle, [&](const Node& node) { *p = work_in<AllocWork>(node).said; });
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t handle, void* memory) {
  return get(handle, [&](const Node& node) { *static_cast<void**>(memory) = work_in<FreeWork>(node).memory; });
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* p) {
  return set(node, [&] { return any_node(*p); });
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* p) {
  return set(node, [&] { return kernel_node(*p); });
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return set(node, [&] { return copy_node(copy_box(*p)); });
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                           cudaMemcpyKind kind) {
  return set(node, [&] { return copy_1d(to, from, bytes, kind); });
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* p) {
  return set(node, [&] { return fill_node(*p); });
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return set(node, [&] { return host_node(*p); });
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* p) {
  return set(exec, node, [&] { return any_node(*p); });
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* p) {
  return set(exec, node, [&] { return kernel_node(*p); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return set(exec, node, [&] { return copy_node(copy_box(*p)); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to, const void* from,
                                               size_t bytes, cudaMemcpyKind kind) {
  return set(exec, node, [&] { return copy_1d(to, from, bytes, kind); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void* symbol,
                                                     const void* from, size_t bytes, size_t offset,
                                                     cudaMemcpyKind kind) {
  return set(exec, node, [&] { return copy_1d(in_symbol(symbol, offset, bytes), from, bytes, kind); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                                       const void* symbol, size_t bytes, size_t offset,
                                                       cudaMemcpyKind kind) {
  return set(exec, node, [&] { return copy_1d(to, in_symbol(symbol, offset, bytes), bytes, kind); });
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams* p) {
  return set(exec, node, [&] { return fill_node(*p); });
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return set(exec, node, [&] { return host_node(*p); });
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t handle, unsigned enabled) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    Node& node = node_in(executable_of(exec), handle);
    const cudaGraphNodeType type = type_of(node);
    require(type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset);
    node.enabled = enabled != 0;
  });
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t handle, unsigned* enabled) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    *enabled = node_in(executable_of(exec), handle).enabled;
  });
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t handle, cudaKernelNodeAttrID id,
                                            const cudaKernelNodeAttrValue* value) {
  return runtime_call([&] {
    cudaLaunchAttribute attribute{};
    attribute.id = id;
    attribute.val = *value;
    const Lock lock = lock_state();
    Node& node = node_of(handle);
    node.work = with_attribute(node, attribute);
  });
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t handle, cudaKernelNodeAttrID id,
                                            cudaKernelNodeAttrValue* value) {
  return get(handle, [&](const Node& node) {
    const ptx::Launch& launch = work_in<KernelWork>(node).launch;
    *value = {};
    if (id == cudaLaunchAttributeClusterDimension) {
      value->clusterDim.x = launch.cluster.x;
      value->clusterDim.y = launch.cluster.y;
      value->clusterDim.z = launch.cluster.z;
    } else if (id == cudaLaunchAttributeCooperative) {
      value->cooperative = launch.cooperative;
    }
  });
}
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    Node& node = node_of(to);
    const ptx::Launch& launch = work_in<KernelWork>(node_of(from)).launch;
    cudaLaunchAttribute cluster{}, cooperative{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = launch.cluster.x;
    cluster.val.clusterDim.y = launch.cluster.y;
    cluster.val.clusterDim.z = launch.cluster.z;
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = launch.cooperative;
    node.work = with_attribute(node, cluster);
    node.work = with_attribute(node, cooperative);
  });
}
cudaError_t cudaDeviceGraphMemTrim(int device) {
  return runtime_call([&] { Device::get(device); });
}
cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType, void* value) {
  return runtime_call([&] {
    Device::get(device);
    *static_cast<uint64_t*>(value) = 0;
  });
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType, void*) {
  return runtime_call([&] { Device::get(device); });
}
