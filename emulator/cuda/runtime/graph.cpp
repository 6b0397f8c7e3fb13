// SPDX-License-Identifier: Apache-2.0
// Graphs as a whole; nodes are in graph_nodes.cpp.
#include <algorithm>

#include "emulator/cuda/condition.h"
#include "emulator/cuda/graph_nodes.h"
#include "emulator/cuda/runtime/call.h"
#include "emulator/cuda/user_object.h"

using namespace emulator;
using namespace emulator::cuda;

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return runtime_call([&] {
    require(flags == 0);
    const Lock lock = lock_state();
    *graph = adopt(make_graph());
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return runtime_call([&] { graph_destroy(graph); });
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return runtime_call([&] { *clone = graph_clone(graph); });
}
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned launch_value, unsigned flags) {
  return runtime_call([&] {
    require(handle != nullptr);
    const Lock lock = lock_state();
    *handle = make_condition(graph_of(graph), launch_value, flags)->handle;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return runtime_call([&] { *exec = graph_instantiate(graph, flags); });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphInstantiateParams* p) {
  return runtime_call([&] {
    p->errNode_out = nullptr;
    p->result_out = cudaGraphInstantiateError;
    *exec = graph_instantiate(graph, p->flags);
    p->result_out = cudaGraphInstantiateSuccess;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return runtime_call([&] { graph_exec_destroy(exec); });
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    *flags = executable_of(exec).flags;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return runtime_call([&] { graph_launch(exec, stream); });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    executable_of(exec);
    stream_of(stream);
  });
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return runtime_call([&] {
    cudaGraphExecUpdateResultInfo own{};
    graph_exec_update(exec, graph, info ? *info : own);
  });
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  return runtime_call([&] { write_dot(graph, path); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return runtime_call([&] { give_nodes(graph, false, nodes, count); });
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return runtime_call([&] { give_nodes(graph, true, nodes, count); });
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                              size_t* count) {
  return runtime_call([&] {
    give_edges(graph, from, to, count);
    if (data && count) std::fill_n(data, *count, cudaGraphEdgeData{});
  });
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                         size_t* count) {
  return runtime_call([&] {
    give_neighbours(node, false, nodes, count);
    if (data && nodes) std::fill_n(data, *count, cudaGraphEdgeData{});
  });
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                           size_t* count) {
  return runtime_call([&] {
    give_neighbours(node, true, nodes, count);
    if (data && nodes) std::fill_n(data, *count, cudaGraphEdgeData{});
  });
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, size_t count) {
  return runtime_call([&] { change_edges(graph, from, to, count, true); });
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData*, size_t count) {
  return runtime_call([&] { change_edges(graph, from, to, count, false); });
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return runtime_call([&] { graph_node_destroy(node); });
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original, cudaGraph_t clone) {
  return runtime_call([&] { *found = node_in_clone(original, clone); });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags) {
  return runtime_call([&] {
    require(destroy != nullptr && references > 0 && flags == cudaUserObjectNoDestructorSync);
    *object = reinterpret_cast<cudaUserObject_t>(new UserObject{pointer, destroy, references});
  });
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return runtime_call([&] { retain(*reinterpret_cast<UserObject*>(object), count); });
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return runtime_call([&] { release(*reinterpret_cast<UserObject*>(object), count); });
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    if (!(flags & cudaGraphUserObjectMove)) retain(*reinterpret_cast<UserObject*>(object), count);
    graph_of(graph).objects[object] += count;
  });
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    auto& objects = graph_of(graph).objects;
    const auto found = objects.find(object);
    require(found != objects.end() && found->second >= count);
    if ((found->second -= count) == 0) objects.erase(found);
    release(*reinterpret_cast<UserObject*>(object), count);
  });
}
