// SPDX-License-Identifier: Apache-2.0
// Graphs, and code shared with the runtime. Handles are the runtime's, and so are most parameters but for their layout.
#include <algorithm>
#include <cstring>

#include "emulator/cuda/condition.h"
#include "emulator/cuda/driver/call.h"
#include "emulator/cuda/graph_nodes.h"

using namespace emulator;
using namespace emulator::cuda;

#define API(name) CUresult cu##name
#define API_RESULT CUresult
#define API_EDGE CUgraphEdgeData
#define API_CALL call
#include "emulator/cuda/twins.inc"

namespace {

/// For the second and the third version of the parameters.
template <class P>
SharedWork kernel(const P& p) {
  return kernel_node({p.func ? static_cast<void*>(p.func) : static_cast<void*>(p.kern),
                      dim3(p.gridDimX, p.gridDimY, p.gridDimZ), dim3(p.blockDimX, p.blockDimY, p.blockDimZ),
                      p.sharedMemBytes, p.kernelParams, p.extra});
}
template <class P>
SharedWork fill(const P& p) {
  return fill_node({pointer(p.dst), p.pitch, p.value, p.elementSize, p.width, p.height});
}
SharedWork copy(const CUDA_MEMCPY3D& p) { return copy_node(copy_box(p)); }
template <class P>
SharedWork host(const P& p) {
  return host_node({p.fn, p.userData});
}

SharedWork any(CUgraphNodeParams& p) {
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return kernel(p.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy(p.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return fill(p.memset);
    case CU_GRAPH_NODE_TYPE_HOST:
      return host(p.host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return child_node(p.graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return make_work(EmptyWork{}, current_device());
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return wait_node(p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return record_node(p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
      cudaConditionalNodeParams conditional{};
      conditional.handle = p.conditional.handle;
      conditional.type = cudaGraphConditionalNodeType(p.conditional.type);
      conditional.size = p.conditional.size;
      SharedWork work = conditional_node(conditional);
      p.conditional.phGraph_out = conditional.phGraph_out;
      return work;
    }
    default:
      fail(cudaErrorNotSupported, cat("cuGraphAddNode of nodes of type ", int(p.type), " is not emulated"));
  }
}

}  // namespace

#undef cuGraphInstantiate
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  return call([&] {
    p->hErrNode_out = nullptr;
    p->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    *exec = graph_instantiate(graph, p->flags);
    p->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  });
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return call([&] {
    const Lock lock = lock_state();
    *type = CUgraphNodeType(type_of(node_of(node)));
  });
}
CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  return call([&] {
    const Lock lock = lock_state();
    *flags = executable_of(exec).flags;
  });
}
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  return call([&] {
    cudaGraphExecUpdateResultInfo own{};
    const auto tell = [&] {
      if (info) *info = {CUgraphExecUpdateResult(own.result), own.errorNode, own.errorFromNode};
    };
    try {
      graph_exec_update(exec, graph, own);
    } catch (...) {
      tell();
      throw;
    }
    tell();
  });
}
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext,
                                        unsigned launch_value, unsigned flags) {
  return call([&] {
    require(handle != nullptr);
    const Lock lock = lock_state();
    *handle = make_condition(graph_of(graph), launch_value, flags)->handle;
  });
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData*,
                        size_t count, CUgraphNodeParams* p) {
  return add(node, graph, dependencies, count, [&] { return any(*p); });
}
CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS* p) {
  return add(node, graph, dependencies, count, [&] { return kernel(*p); });
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMCPY3D* p, CUcontext) {
  return add(node, graph, dependencies, count, [&] { return copy(*p); });
}
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  return add(node, graph, dependencies, count, [&] { return fill(*p); });
}
CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS* p) {
  return add(node, graph, dependencies, count, [&] { return host(*p); });
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* p) {
  return get(node, [&](const Node& one) {
    const cudaKernelNodeParams k = kernel_params(one);
    *p = {static_cast<CUfunction>(k.func),
          k.gridDim.x,
          k.gridDim.y,
          k.gridDim.z,
          k.blockDim.x,
          k.blockDim.y,
          k.blockDim.z,
          k.sharedMemBytes,
          k.kernelParams,
          nullptr,
          nullptr,
          nullptr};
  });
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* p) {
  return get(node, [&](const Node& one) {
    const cudaMemsetParams m = fill_params(one);
    *p = {address(m.dst), m.pitch, m.value, m.elementSize, m.width, m.height};
  });
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* p) {
  return get(node, [&](const Node& one) { *p = {work_in<HostWork>(one).function, work_in<HostWork>(one).data}; });
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* p) {
  return set(node, [&] { return any(*p); });
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p) {
  return set(node, [&] { return kernel(*p); });
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* p) {
  return set(node, [&] { return copy(*p); });
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* p) {
  return set(node, [&] { return fill(*p); });
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* p) {
  return set(node, [&] { return host(*p); });
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* p) {
  return set(exec, node, [&] { return any(*p); });
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p) {
  return set(exec, node, [&] { return kernel(*p); });
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* p, CUcontext) {
  return set(exec, node, [&] { return copy(*p); });
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* p,
                                        CUcontext) {
  return set(exec, node, [&] { return fill(*p); });
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* p) {
  return set(exec, node, [&] { return host(*p); });
}
