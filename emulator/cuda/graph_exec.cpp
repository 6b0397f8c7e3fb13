// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <unordered_map>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/condition.h"
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
    if (const auto* conditional = std::get_if<ConditionalWork>(&node->work->what))
      for (const std::shared_ptr<Graph>& body : conditional->bodies) index_nodes(*body, by_original);
  }
}

/// The stream of a launch; it may be destroyed before the last node of the graph is issued.
struct Place {
  int device = 0;
  uint64_t stream = 0;
};

/// A conditional node under way.
struct Choice {
  const Node* node = nullptr;
  std::shared_ptr<const Work> work;
  std::shared_ptr<Graph> owner;  ///< graph of the node
  Place place;
  Op decision, end;
};

Op launch(Lock& lock, const std::shared_ptr<Graph>& graph, const Place& place, const std::vector<Op>& before);
std::shared_ptr<Choice> issue_decision(Lock& lock, Choice choice, const std::vector<Op>& after);

/// Work of the device: what the node runs is known now, and is issued between this operation and the node's end.
void decide(const Choice& choice) {
  const auto& conditional = std::get<ConditionalWork>(choice.work->what);
  const std::shared_ptr<Graph>* const body = conditional.chosen();
  if (!body) return;
  Lock lock = lock_state();
  Op last = launch(lock, *body, choice.place, {choice.decision});
  if (conditional.type == cudaGraphCondTypeWhile) last = issue_decision(lock, choice, {last})->decision;
  scheduler().postpone(lock, *choice.end, last);
}

std::shared_ptr<Choice> issue_decision(Lock& lock, Choice choice, const std::vector<Op>& after) {
  const auto own = std::make_shared<Choice>(std::move(choice));
  const stream_check::Issuing issuing(&own->work, own->node);
  own->decision = scheduler().issue(
      lock, own->work->device, own->place.stream, Operation::Kind::device, [own] { decide(*own); }, after);
  return own;
}

/// Returns an operation that ends with the node.
Op issue_conditional(Lock& lock, const Node& node, const std::shared_ptr<Graph>& owner, const Place& place,
                     const std::vector<Op>& after) {
  const std::shared_ptr<Choice> first = issue_decision(lock, {&node, node.work, owner, place, {}, {}}, after);
  first->end = scheduler().issue(lock, place.device, place.stream, Operation::Kind::marker, nullptr, {first->decision});
  return first->end;
}

/// Issues a graph's nodes after `before`, in any order that its edges allow. Returns an operation that ends with the last of them.
Op launch(Lock& lock, const std::shared_ptr<Graph>& graph, const Place& place, const std::vector<Op>& before) {
  std::unordered_map<const Node*, Op> issued;
  std::vector<Op> leaves;
  for (Node* node : graph->ordered()) {
    std::vector<Op> after;
    for (const Node* dependency : node->dependencies) after.push_back(issued.at(dependency));
    if (after.empty()) after = before;
    Op op;
    const Work& work = *node->work;
    if (const auto* child = std::get_if<ChildWork>(&work.what); child && node->enabled) {
      op = launch(lock, child->graph, place, after);
    } else if (std::holds_alternative<ConditionalWork>(work.what)) {
      op = issue_conditional(lock, *node, graph, place, after);
    } else {
      if (const auto* wait = std::get_if<WaitWork>(&work.what)) after.push_back(event_of(wait->event).recorded);
      const Operation::Kind kind = node->enabled ? work.kind() : Operation::Kind::marker;
      std::function<void()> call;
      if (kind != Operation::Kind::marker) {
        call = [shared = node->work, owner = graph] { shared->perform(); };
      }
      const stream_check::Issuing issuing(&node->work, node);
      op = scheduler().issue(lock, kind == Operation::Kind::marker ? place.device : work.device, place.stream, kind,
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
  return scheduler().issue(lock, place.device, place.stream, Operation::Kind::marker, nullptr, leaves);
}

/// The conditions that a graph's nodes ask, those in its conditional nodes' graphs included.
void collect_conditions(const Graph& graph, std::set<std::shared_ptr<Condition>>& asked) {
  for (const auto& node : graph.nodes) {
    const auto* const conditional = std::get_if<ConditionalWork>(&node->work->what);
    if (!conditional) continue;
    asked.insert(conditional->condition);
    for (const std::shared_ptr<Graph>& body : conditional->bodies) collect_conditions(*body, asked);
  }
}

/// Checks the body of a conditional node, recursively. Errors: cudaErrorNotSupported.
void check_body(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    switch (const cudaGraphNodeType type = type_of(*node)) {
      case cudaGraphNodeTypeKernel:
      case cudaGraphNodeTypeMemcpy:
      case cudaGraphNodeTypeMemset:
      case cudaGraphNodeTypeEmpty:
        break;
      case cudaGraphNodeTypeGraph:
        check_body(*std::get<ChildWork>(node->work->what).graph);
        break;
      case cudaGraphNodeTypeConditional:
        for (const auto& body : std::get<ConditionalWork>(node->work->what).bodies) check_body(*body);
        break;
      default:
        fail(cudaErrorNotSupported, cat("a conditional node's graph has a node of type ", int(type),
                                        ": only kernels, copies, fills, empty nodes, child graphs and conditional nodes may be there"));
    }
  }
  (void)graph.ordered();  // refuses cycles
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
    if (const auto* conditional = std::get_if<ConditionalWork>(&x.work->what)) {
      const auto& other = std::get<ConditionalWork>(y.work->what);
      if (conditional->type != other.type || conditional->bodies.size() != other.bodies.size())
        return differ(cudaGraphExecUpdateErrorParametersChanged, &y);
      for (size_t k = 0; k < other.bodies.size(); ++k)
        if (!same_form(*conditional->bodies[k], *other.bodies[k], info)) return false;
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
    } else if (const auto* conditional = std::get_if<ConditionalWork>(&x.work->what)) {
      const auto& other = std::get<ConditionalWork>(y.work->what);
      for (size_t k = 0; k < other.bodies.size(); ++k) take_work(*conditional->bodies[k], *other.bodies[k], by_original);
      // The kernels have the new handle now.
      x.work = make_work(ConditionalWork{other.condition, conditional->type, conditional->bodies, conditional->handles},
                         x.work->device);
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
  for (const auto& node : graph.nodes)
    if (const auto* conditional = std::get_if<ConditionalWork>(&node->work->what))
      for (const std::shared_ptr<Graph>& body : conditional->bodies) check_body(*body);
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
    require(!executable.graph->has_conditional_nodes(), cudaErrorNotSupported);
    std::shared_ptr<Graph> copy = executable.graph->clone();
    copy->child = true;
    capture_work(stream, make_work(ChildWork{std::move(copy)}, stream.device));
    return;
  }
  std::vector<Op> before = everything_before(stream);
  if (executable.last) before.push_back(executable.last);
  if (std::set<std::shared_ptr<Condition>> asked; collect_conditions(*executable.graph, asked), !asked.empty()) {
    before = {scheduler().issue(
        lock, stream.device, stream.number, Operation::Kind::device,
        [asked] {
          for (const std::shared_ptr<Condition>& condition : asked) condition->begin();
        },
        before)};
  }
  const Op last = launch(lock, executable.graph, {stream.device, stream.number}, before);
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
