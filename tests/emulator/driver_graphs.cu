// SPDX-License-Identifier: Apache-2.0
// Graphs by the driver's calls, as a stand-alone program: built node by node, asked, cloned, updated and with a loop.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "promises.h"

namespace {

#define DRIVER(call)                                              \
  do {                                                            \
    if (const CUresult status = (call); status != CUDA_SUCCESS) { \
      const char* name = nullptr;                                 \
      cuGetErrorName(status, &name);                              \
      std::printf("FAILED %s: %s\n", #call, name);                \
      std::exit(1);                                               \
    }                                                             \
  } while (false)

__global__ void scale(int* data, int factor) { data[threadIdx.x] *= factor; }
__global__ void count_down(int* data, int* left, cudaGraphConditionalHandle again) {
  data[threadIdx.x] += 1;
  if (threadIdx.x == 0) cudaGraphSetConditional(again, --*left > 0);
}

CUfunction function_of(const void* kernel) {
  cudaFunction_t function = nullptr;
  MUST(cudaGetFuncBySymbol(&function, kernel));
  return function;
}

CUDA_KERNEL_NODE_PARAMS scaled(int** data, int* factor, void** arguments) {
  arguments[0] = data;
  arguments[1] = factor;
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = function_of(reinterpret_cast<const void*>(scale));
  p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
  p.blockDimX = 32;
  p.kernelParams = arguments;
  return p;
}

/// data = 7, data *= factor, to the host; then a host function counts.
struct Chain {
  const Array<int> data{32};
  std::vector<int> host = std::vector<int>(32);
  int called = 0, factor = 3;
  CUgraph graph = nullptr;
  CUgraphNode fills, scales, copies, calls;
  int* memory = data.data;
  void* arguments[2];

  Chain() {
    DRIVER(cuGraphCreate(&graph, 0));
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = reinterpret_cast<CUdeviceptr>(memory);
    fill.elementSize = 4;
    fill.value = 7;
    fill.width = 32;
    fill.height = 1;
    DRIVER(cuGraphAddMemsetNode(&fills, graph, nullptr, 0, &fill, nullptr));
    const CUDA_KERNEL_NODE_PARAMS kernel = scaled(&memory, &factor, arguments);
    DRIVER(cuGraphAddKernelNode(&scales, graph, &fills, 1, &kernel));
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = fill.dst;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = host.data();
    copy.WidthInBytes = 128;
    copy.Height = copy.Depth = 1;
    DRIVER(cuGraphAddMemcpyNode(&copies, graph, nullptr, 0, &copy, nullptr));
    DRIVER(cuGraphAddDependencies(graph, &scales, &copies, nullptr, 1));
    CUDA_HOST_NODE_PARAMS function{};
    function.fn = [](void* p) { ++*static_cast<int*>(p); };
    function.userData = &called;
    DRIVER(cuGraphAddHostNode(&calls, graph, &copies, 1, &function));
  }
  ~Chain() { cuGraphDestroy(graph); }

  bool runs(CUgraphExec exec, int expected) {
    const int before = called;
    std::ranges::fill(host, 0);
    DRIVER(cuGraphLaunch(exec, nullptr));
    MUST(cudaDeviceSynchronize());
    return called == before + 1 && std::ranges::all_of(host, [&](int x) { return x == expected; });
  }
};

bool runs_a_chain() {
  Chain chain;
  CUgraphExec exec = nullptr;
  DRIVER(cuGraphInstantiate(&exec, chain.graph, 0));
  bool right = chain.runs(exec, 21);
  int other = 5;
  void* arguments[2];
  const CUDA_KERNEL_NODE_PARAMS kernel = scaled(&chain.memory, &other, arguments);
  DRIVER(cuGraphExecKernelNodeSetParams(exec, chain.scales, &kernel));
  right = right && chain.runs(exec, 35);
  // The graph still has the first factor.
  CUDA_KERNEL_NODE_PARAMS said{};
  DRIVER(cuGraphKernelNodeGetParams(chain.scales, &said));
  right = right && *static_cast<int*>(said.kernelParams[1]) == 3 && said.blockDimX == 32;
  CUgraphExecUpdateResultInfo info{};
  DRIVER(cuGraphExecUpdate(exec, chain.graph, &info));
  right = right && info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && chain.runs(exec, 21);
  DRIVER(cuGraphDestroyNode(chain.calls));
  right = right && cuGraphExecUpdate(exec, chain.graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE &&
          info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  DRIVER(cuGraphExecDestroy(exec));
  return right;
}

bool tells_its_form() {
  Chain chain;
  size_t count = 0;
  DRIVER(cuGraphGetNodes(chain.graph, nullptr, &count));
  bool right = count == 4;
  CUgraphNode nodes[4], from[3], to[3];
  count = 4;
  DRIVER(cuGraphGetRootNodes(chain.graph, nodes, &count));
  right = right && count == 1 && nodes[0] == chain.fills && nodes[1] == nullptr;
  count = 3;
  CUgraphEdgeData edges[3];
  DRIVER(cuGraphGetEdges(chain.graph, from, to, edges, &count));
  right = right && count == 3 && from[1] == chain.scales && to[1] == chain.copies;
  count = 1;
  DRIVER(cuGraphNodeGetDependencies(chain.calls, nodes, nullptr, &count));
  right = right && count == 1 && nodes[0] == chain.copies;
  CUgraphNodeType type;
  DRIVER(cuGraphNodeGetType(chain.copies, &type));
  CUgraph clone = nullptr;
  DRIVER(cuGraphClone(&clone, chain.graph));
  DRIVER(cuGraphNodeFindInClone(nodes, chain.scales, clone));
  right = right && type == CU_GRAPH_NODE_TYPE_MEMCPY && nodes[0] != chain.scales;
  // A child graph runs as often as its node.
  CUgraph parent = nullptr;
  CUgraphNode first, second;
  DRIVER(cuGraphCreate(&parent, 0));
  DRIVER(cuGraphAddChildGraphNode(&first, parent, nullptr, 0, clone));
  DRIVER(cuGraphAddChildGraphNode(&second, parent, &first, 1, clone));
  CUgraphExec exec = nullptr;
  DRIVER(cuGraphInstantiate(&exec, parent, 0));
  DRIVER(cuGraphLaunch(exec, nullptr));
  MUST(cudaDeviceSynchronize());
  right = right && chain.called == 2 && chain.host[31] == 21;
  DRIVER(cuGraphRemoveDependencies(parent, &first, &second, nullptr, 1));
  right = right && cuGraphRemoveDependencies(parent, &first, &second, nullptr, 1) == CUDA_ERROR_INVALID_VALUE;
  DRIVER(cuGraphExecDestroy(exec));
  DRIVER(cuGraphDestroy(parent));
  DRIVER(cuGraphDestroy(clone));
  return right;
}

bool repeats() {
  const Array<int> data(32), left(1, 4);
  CUgraph graph = nullptr;
  DRIVER(cuGraphCreate(&graph, 0));
  CUgraphNodeParams loop{};
  loop.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  CUcontext context = nullptr;
  DRIVER(cuCtxGetCurrent(&context));
  DRIVER(cuGraphConditionalHandleCreate(&loop.conditional.handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  loop.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  loop.conditional.size = 1;
  loop.conditional.ctx = context;
  CUgraphNode node, body;
  DRIVER(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &loop));
  int *memory = data.data, *counter = left.data;
  void* arguments[] = {&memory, &counter, &loop.conditional.handle};
  CUgraphNodeParams kernel{};
  kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
  kernel.kernel.func = function_of(reinterpret_cast<const void*>(count_down));
  kernel.kernel.gridDimX = kernel.kernel.gridDimY = kernel.kernel.gridDimZ = kernel.kernel.blockDimY =
      kernel.kernel.blockDimZ = 1;
  kernel.kernel.blockDimX = 32;
  kernel.kernel.kernelParams = arguments;
  DRIVER(cuGraphAddNode(&body, loop.conditional.phGraph_out[0], nullptr, nullptr, 0, &kernel));
  CUgraphExec exec = nullptr;
  DRIVER(cuGraphInstantiate(&exec, graph, 0));
  DRIVER(cuGraphLaunch(exec, nullptr));
  MUST(cudaDeviceSynchronize());
  const bool right = data.get() == std::vector<int>(32, 4) && left.get()[0] == 0;
  DRIVER(cuGraphExecDestroy(exec));
  DRIVER(cuGraphDestroy(graph));
  return right;
}

}  // namespace

int main() {
  return keep_promises({{"runs_a_chain", runs_a_chain}, {"tells_its_form", tells_its_form}, {"repeats", repeats}});
}
