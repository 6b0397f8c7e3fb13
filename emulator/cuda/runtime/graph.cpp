// SPDX-License-Identifier: Apache-2.0
// Graphs as a whole, but for code shared with the driver (twins.inc); nodes are in graph_nodes.cpp.
#include "emulator/cuda/condition.h"
#include "emulator/cuda/graph_nodes.h"
#include "emulator/cuda/runtime/call.h"
#include "emulator/cuda/user_object.h"

using namespace emulator;
using namespace emulator::cuda;

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
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphInstantiateParams* p) {
  return runtime_call([&] {
    p->errNode_out = nullptr;
    p->result_out = cudaGraphInstantiateError;
    *exec = graph_instantiate(graph, p->flags);
    p->result_out = cudaGraphInstantiateSuccess;
  });
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return runtime_call([&] {
    const Lock lock = lock_state();
    *flags = executable_of(exec).flags;
  });
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return runtime_call([&] {
    cudaGraphExecUpdateResultInfo own{};
    graph_exec_update(exec, graph, info ? *info : own);
  });
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
