// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/graph.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/stream_check.h"
#include "emulator/cuda/user_object.h"

namespace emulator::cuda {
namespace {

// Live handles. They have a lock of their own: a graph may end with or without the state's lock held.
struct Live {
  std::mutex mutex;
  std::unordered_set<const void*> graphs, nodes;
};
Live& live() {
  static Live* const all = new Live;
  return *all;
}

std::unordered_map<const Graph*, std::shared_ptr<Graph>>& owned_graphs() {
  static auto* const all = new std::unordered_map<const Graph*, std::shared_ptr<Graph>>;
  return *all;
}

uint64_t next_node() {
  static std::atomic<uint64_t> number{0};
  return ++number;
}

}  // namespace

Graph::Graph() {
  const std::lock_guard lock(live().mutex);
  live().graphs.insert(this);
}

Graph::~Graph() {
  {
    const std::lock_guard lock(live().mutex);
    live().graphs.erase(this);
    for (const auto& node : nodes) live().nodes.erase(node.get());
  }
  for (const auto& [object, count] : objects) release(*static_cast<UserObject*>(object), count);
}

Node* Graph::add(std::shared_ptr<const Work> work, const std::vector<Node*>& dependencies) {
  auto node = std::make_unique<Node>();
  node->number = next_node();
  node->graph = this;
  node->work = std::move(work);
  if (stream_check::on()) node->site = std::make_shared<const CallSite>(CallSite::here());
  Node* const added = node.get();
  nodes.push_back(std::move(node));
  for (Node* before : dependencies) connect(before, added);
  const std::lock_guard lock(live().mutex);
  live().nodes.insert(added);
  return added;
}

void Graph::connect(Node* from, Node* to) {
  require(from->graph == this && to->graph == this && from != to);
  require(std::ranges::find(to->dependencies, from) == to->dependencies.end());
  to->dependencies.push_back(from);
  from->dependents.push_back(to);
}

void Graph::disconnect(Node* from, Node* to) {
  require(std::ranges::find(to->dependencies, from) != to->dependencies.end());
  std::erase(to->dependencies, from);
  std::erase(from->dependents, to);
}

void Graph::remove(Node* node) {
  for (Node* before : node->dependencies) std::erase(before->dependents, node);
  for (Node* after : node->dependents) std::erase(after->dependencies, node);
  {
    const std::lock_guard lock(live().mutex);
    live().nodes.erase(node);
  }
  std::erase_if(nodes, [&](const auto& one) { return one.get() == node; });
}

std::vector<Node*> Graph::ordered() const {
  std::unordered_map<const Node*, size_t> left;
  std::vector<Node*> order;
  for (const auto& node : nodes) {
    left[node.get()] = node->dependencies.size();
    if (node->dependencies.empty()) order.push_back(node.get());
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (Node* next : order[i]->dependents)
      if (--left[next] == 0) order.push_back(next);
  }
  require(order.size() == nodes.size());
  return order;
}

bool Graph::has_conditional_nodes() const {
  return std::ranges::any_of(
      nodes, [](const auto& node) { return std::holds_alternative<ConditionalWork>(node->work->what); });
}

std::shared_ptr<Graph> Graph::clone() const {
  std::shared_ptr<Graph> copy = make_graph();
  copy->original = this;
  copy->memory = memory;
  copy->objects = objects;
  for (const auto& [object, count] : objects) retain(*static_cast<UserObject*>(object), count);
  std::unordered_map<const Node*, Node*> twins;
  for (const auto& node : nodes) {
    std::shared_ptr<const Work> work = node->work;
    if (const auto* nested = std::get_if<ChildWork>(&work->what)) {
      std::shared_ptr<Graph> inner = nested->graph->clone();
      inner->child = true;
      work = make_work(ChildWork{std::move(inner)}, work->device);
    } else if (const auto* conditional = std::get_if<ConditionalWork>(&work->what)) {
      ConditionalWork other{conditional->condition, conditional->type, {}, {}};
      for (const std::shared_ptr<Graph>& body : conditional->bodies) {
        other.bodies.push_back(body->clone());
        other.handles.push_back(handle_of(*other.bodies.back()));
      }
      work = make_work(std::move(other), work->device);
    }
    Node* const twin = copy->add(std::move(work), {});
    twin->original = node.get();
    twin->enabled = node->enabled;
    twin->site = node->site;
    twins[node.get()] = twin;
  }
  for (const auto& node : nodes)
    for (Node* before : node->dependencies) copy->connect(twins[before], twins[node.get()]);
  return copy;
}

std::shared_ptr<Graph> make_graph() { return std::make_shared<Graph>(); }

cudaGraph_t adopt(const std::shared_ptr<Graph>& graph) {
  owned_graphs()[graph.get()] = graph;
  return handle_of(*graph);
}

cudaGraph_t handle_of(Graph& graph) { return reinterpret_cast<cudaGraph_t>(&graph); }

Graph& graph_of(cudaGraph_t handle) {
  const std::lock_guard lock(live().mutex);
  require(live().graphs.contains(handle));
  return *reinterpret_cast<Graph*>(handle);
}

Node& node_of(cudaGraphNode_t handle) {
  const std::lock_guard lock(live().mutex);
  require(live().nodes.contains(handle));
  return *reinterpret_cast<Node*>(handle);
}

void graph_destroy(cudaGraph_t handle) {
  std::shared_ptr<Graph> last;
  const Lock lock = lock_state();
  const auto found = owned_graphs().find(&graph_of(handle));
  require(found != owned_graphs().end());
  last = std::move(found->second);
  owned_graphs().erase(found);
}

void graph_node_destroy(cudaGraphNode_t handle) {
  const Lock lock = lock_state();
  Node& node = node_of(handle);
  node.graph->remove(&node);
}

cudaGraphNode_t graph_add(cudaGraph_t handle, const cudaGraphNode_t* dependencies, size_t count,
                          std::shared_ptr<const Work> work) {
  const Lock lock = lock_state();
  Graph& graph = graph_of(handle);
  require(count == 0 || dependencies != nullptr);
  std::vector<Node*> before;
  for (size_t i = 0; i < count; ++i) {
    before.push_back(&node_of(dependencies[i]));
    require(before.back()->graph == &graph && std::ranges::count(before, before.back()) == 1);
  }
  return handle_of(graph.add(std::move(work), before));
}

cudaGraphNodeType type_of(const Node& node) {
  struct Type {
    cudaGraphNodeType operator()(const KernelWork&) const { return cudaGraphNodeTypeKernel; }
    cudaGraphNodeType operator()(const CopyWork&) const { return cudaGraphNodeTypeMemcpy; }
    cudaGraphNodeType operator()(const FillWork&) const { return cudaGraphNodeTypeMemset; }
    cudaGraphNodeType operator()(const HostWork&) const { return cudaGraphNodeTypeHost; }
    cudaGraphNodeType operator()(const EmptyWork&) const { return cudaGraphNodeTypeEmpty; }
    cudaGraphNodeType operator()(const RecordWork&) const { return cudaGraphNodeTypeEventRecord; }
    cudaGraphNodeType operator()(const WaitWork&) const { return cudaGraphNodeTypeWaitEvent; }
    cudaGraphNodeType operator()(const ChildWork&) const { return cudaGraphNodeTypeGraph; }
    cudaGraphNodeType operator()(const ConditionalWork&) const { return cudaGraphNodeTypeConditional; }
    cudaGraphNodeType operator()(const AllocWork&) const { return cudaGraphNodeTypeMemAlloc; }
    cudaGraphNodeType operator()(const FreeWork&) const { return cudaGraphNodeTypeMemFree; }
    cudaGraphNodeType operator()(const CallWork&) const { return cudaGraphNodeTypeEmpty; }
    cudaGraphNodeType operator()(const LibraryWork&) const { return cudaGraphNodeTypeKernel; }
  };
  return std::visit(Type{}, node.work->what);
}

void replace_work(Node& node, std::shared_ptr<const Work> work) {
  require(node.work->what.index() == work->what.index());
  require(!std::holds_alternative<ConditionalWork>(work->what), cudaErrorNotSupported);
  node.work = std::move(work);
}

}  // namespace emulator::cuda
