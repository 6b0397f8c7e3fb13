// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/graph.h"
#include "emulator/cuda/stream_check.h"

namespace emulator::cuda {
namespace {

std::unordered_map<const void*, std::shared_ptr<Executable>>& executables() {
  static auto* const all = new std::unordered_map<const void*, std::shared_ptr<Executable>>;
  return *all;
}

void index_nodes(const Graph& graph, std::unordered_map<const Node*, Node*>& by_original) {
  for (const auto& node : graph.nodes) {
    by_original[node->original] = node.get();
    if (const auto* child = std::get_if<ChildWork>(&node->work->what)) index_nodes(*child->graph, by_original);
  }
}

/// Issues a graph's nodes after `before`, in any order that its edges allow. Returns an operation that ends with the last of them.
Op launch(Lock& lock, const std::shared_ptr<Graph>& graph, const Stream& stream, const std::vector<Op>& before) {
  std::unordered_map<const Node*, Op> issued;
  std::vector<Op> leaves;
  for (Node* node : graph->ordered()) {
    std::vector<Op> after;
    for (const Node* dependency : node->dependencies) after.push_back(issued.at(dependency));
    if (after.empty()) after = before;
    Op op;
    const Work& work = *node->work;
    if (const auto* child = std::get_if<ChildWork>(&work.what); child && node->enabled) {
      op = launch(lock, child->graph, stream, after);
    } else {
      if (const auto* wait = std::get_if<WaitWork>(&work.what)) after.push_back(event_of(wait->event).recorded);
      const Operation::Kind kind = node->enabled ? work.kind() : Operation::Kind::marker;
      std::function<void()> call;
      if (kind != Operation::Kind::marker) {
        call = [shared = node->work, owner = graph] { shared->perform(); };
      }
      const stream_check::Issuing issuing(&node->work, node);
      op = scheduler().issue(lock, kind == Operation::Kind::marker ? stream.device : work.device, stream.number, kind,
                           std::move(call), after);
      if (const auto* record = std::get_if<RecordWork>(&work.what)) {
        Event& event = event_of(record->event);
        event.capture.reset();
        event.nodes.clear();
        event.recorded = op;
      }
    }
    issued[node] = op;
    if (node->dependents.empty()) leaves.push_back(op);
  }
  if (leaves.empty()) leaves = before;
  return scheduler().issue(lock, stream.device, stream.number, Operation::Kind::marker, nullptr, leaves);
}

bool same_form(const Graph& a, const Graph& b, cudaGraphExecUpdateResultInfo& info) {
  const auto differ = [&](cudaGraphExecUpdateResult why, const Node* node) {
    info.result = why;
    info.errorNode = handle_of(const_cast<Node*>(node));
    return false;
  };
  if (a.nodes.size() != b.nodes.size()) return differ(cudaGraphExecUpdateErrorTopologyChanged, nullptr);
  std::unordered_map<const Node*, size_t> in_a, in_b;
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    in_a[a.nodes[i].get()] = i;
    in_b[b.nodes[i].get()] = i;
  }
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const Node &x = *a.nodes[i], &y = *b.nodes[i];
    if (x.work->what.index() != y.work->what.index()) return differ(cudaGraphExecUpdateErrorNodeTypeChanged, &y);
    std::vector<size_t> from_x, from_y;
    for (const Node* node : x.dependencies) from_x.push_back(in_a[node]);
    for (const Node* node : y.dependencies) from_y.push_back(in_b[node]);
    std::ranges::sort(from_x);
    std::ranges::sort(from_y);
    if (from_x != from_y) return differ(cudaGraphExecUpdateErrorTopologyChanged, &y);
    if (const auto* child = std::get_if<ChildWork>(&x.work->what)) {
      if (!same_form(*child->graph, *std::get<ChildWork>(y.work->what).graph, info)) return false;
    }
  }
  return true;
}

void take_work(Graph& to, const Graph& from, std::unordered_map<const Node*, Node*>& by_original) {
  for (size_t i = 0; i < to.nodes.size(); ++i) {
    Node &x = *to.nodes[i], &y = *from.nodes[i];
    by_original[&y] = &x;
    if (const auto* child = std::get_if<ChildWork>(&x.work->what)) {
      take_work(*child->graph, *std::get<ChildWork>(y.work->what).graph, by_original);
    } else {
      x.work = y.work;
    }
  }
  to.memory = from.memory;
}

}  // namespace

Executable& executable_of(cudaGraphExec_t handle) {
  const auto found = executables().find(handle);
  require(found != executables().end());
  return *found->second;
}

Node& node_in(Executable& executable, cudaGraphNode_t handle) {
  const auto found = executable.by_original.find(reinterpret_cast<const Node*>(handle));
  require(found != executable.by_original.end());
  return *found->second;
}

std::shared_ptr<Executable> instantiate(Graph& graph, unsigned long long flags) {
  constexpr unsigned long long kKnown = cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
                                        cudaGraphInstantiateFlagUseNodePriority;
  if (flags & cudaGraphInstantiateFlagDeviceLaunch) {
    fail(cudaErrorNotSupported, "graphs that kernels launch are not emulated");
  }
  require((flags & ~kKnown) == 0);
  (void)graph.ordered();  // refuses cycles
  auto executable = std::make_shared<Executable>();
  executable->graph = graph.clone();
  executable->flags = flags;
  executable->device = current_device();
  index_nodes(*executable->graph, executable->by_original);
  return executable;
}

cudaGraphExec_t graph_instantiate(cudaGraph_t graph, unsigned long long flags) {
  const Lock lock = lock_state();
  const std::shared_ptr<Executable> executable = instantiate(graph_of(graph), flags);
  executables()[executable.get()] = executable;
  return reinterpret_cast<cudaGraphExec_t>(executable.get());
}

void graph_exec_destroy(cudaGraphExec_t handle) {
  std::shared_ptr<Executable> last;  // goes when the lock has gone
  const Lock lock = lock_state();
  executable_of(handle);
  last = std::move(executables()[handle]);
  executables().erase(handle);
}

void graph_launch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  Lock lock = lock_state();
  Stream& stream = stream_of(stream_handle);
  Executable& executable = executable_of(handle);
  refuse_implicit(stream);
  if (stream.capture) {
    std::shared_ptr<Graph> copy = executable.graph->clone();
    copy->child = true;
    capture_work(stream, make_work(ChildWork{std::move(copy)}, stream.device));
    return;
  }
  std::vector<Op> before = everything_before(stream);
  if (executable.last && (!executable.last->done || stream_check::on())) before.push_back(executable.last);
  const Op last = launch(lock, executable.graph, stream, before);
  executable.last = stream.last = last;
  scheduler().step(lock);
}

void graph_exec_update(cudaGraphExec_t handle, cudaGraph_t graph_handle, cudaGraphExecUpdateResultInfo& info) {
  const Lock lock = lock_state();
  Executable& executable = executable_of(handle);
  const Graph& graph = graph_of(graph_handle);
  info = {};
  info.result = cudaGraphExecUpdateSuccess;
  require(same_form(*executable.graph, graph, info), cudaErrorGraphExecUpdateFailure);
  take_work(*executable.graph, graph, executable.by_original);
}

}  // namespace emulator::cuda
