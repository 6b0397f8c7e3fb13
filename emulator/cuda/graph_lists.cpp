// SPDX-License-Identifier: Apache-2.0
// What programs ask about a graph's nodes and edges.
#include <algorithm>

#include "emulator/cuda/error.h"
#include "emulator/cuda/graph.h"

namespace emulator::cuda {
namespace {

void give(const std::vector<Node*>& nodes, cudaGraphNode_t* list, size_t* count) {
  require(count != nullptr);
  if (list) {
    for (size_t i = 0; i < *count; ++i) list[i] = i < nodes.size() ? handle_of(nodes[i]) : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
}

}  // namespace

cudaGraph_t graph_clone(cudaGraph_t graph) {
  const Lock lock = lock_state();
  require(!graph_of(graph).has_conditional_nodes(), cudaErrorNotSupported);
  return adopt(graph_of(graph).clone());
}

cudaGraphNode_t node_in_clone(cudaGraphNode_t original, cudaGraph_t clone) {
  const Lock lock = lock_state();
  for (const auto& node : graph_of(clone).nodes)
    if (handle_of(const_cast<Node*>(node->original)) == original) return handle_of(node.get());
  fail(cudaErrorInvalidValue);
}

void give_nodes(cudaGraph_t graph, bool roots_only, cudaGraphNode_t* nodes, size_t* count) {
  const Lock lock = lock_state();
  std::vector<Node*> found;
  for (const auto& node : graph_of(graph).nodes)
    if (!roots_only || node->dependencies.empty()) found.push_back(node.get());
  give(found, nodes, count);
}

void give_edges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  const Lock lock = lock_state();
  std::vector<Node*> begins, ends;
  for (const auto& node : graph_of(graph).nodes) {
    for (Node* before : node->dependencies) {
      begins.push_back(before);
      ends.push_back(node.get());
    }
  }
  size_t same = count ? *count : 0;
  give(begins, from, count);
  if (to) give(ends, to, &same);
}

void give_neighbours(cudaGraphNode_t node, bool dependents, cudaGraphNode_t* nodes, size_t* count) {
  const Lock lock = lock_state();
  give(dependents ? node_of(node).dependents : node_of(node).dependencies, nodes, count);
}

void change_edges(cudaGraph_t handle, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count, bool add) {
  const Lock lock = lock_state();
  Graph& graph = graph_of(handle);
  for (size_t i = 0; i < count; ++i) {
    Node &before = node_of(from[i]), &after = node_of(to[i]);
    add ? graph.connect(&before, &after) : graph.disconnect(&before, &after);
  }
}

}  // namespace emulator::cuda
