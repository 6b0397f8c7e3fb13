// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/cuda/work.h"
#include "emulator/machine/call_site.h"

namespace emulator::cuda {

struct Condition;
struct Graph;

struct Node {
  uint64_t number = 0;
  Graph* graph = nullptr;
  std::shared_ptr<const Work> work;
  std::vector<Node*> dependencies, dependents;
  bool enabled = true;
  std::shared_ptr<const CallSite> site;  ///< the call that added the node, while streams are checked
  const Node* original = nullptr;        ///< for a clone: the node that it was made from
};

/// A cudaGraph_t points at this. Under the state's lock.
struct Graph : std::enable_shared_from_this<Graph> {
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::shared_ptr<void>> memory;  ///< held by allocation nodes
  std::map<void*, unsigned> objects;          ///< user objects, with how often they are retained
  std::vector<std::shared_ptr<Condition>> conditions;  ///< whose handles were made for it
  const Graph* original = nullptr;
  bool child = false;  ///< belongs to a node

  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Node* add(std::shared_ptr<const Work> work, const std::vector<Node*>& dependencies);
  void connect(Node* from, Node* to);
  void disconnect(Node* from, Node* to);
  void remove(Node* node);
  /// Each after all it depends on. Errors: cudaErrorInvalidValue when there is a cycle.
  std::vector<Node*> ordered() const;
  /// Has it conditional nodes? Such a graph is nobody's child, and the program may not clone it.
  bool has_conditional_nodes() const;
  std::shared_ptr<Graph> clone() const;
};

/// A cudaGraphExec_t points at this: a graph of its own.
struct Executable {
  std::shared_ptr<Graph> graph;
  std::unordered_map<const Node*, Node*> by_original;
  unsigned long long flags = 0;
  int device = 0;
  Op last;  ///< launches of one executable graph do not overlap
};

Graph& graph_of(cudaGraph_t handle);
Node& node_of(cudaGraphNode_t handle);
Executable& executable_of(cudaGraphExec_t handle);
cudaGraph_t handle_of(Graph& graph);
inline cudaGraphNode_t handle_of(Node* node) { return reinterpret_cast<cudaGraphNode_t>(node); }
/// The executable's copy of a node of the graph that it was made from.
Node& node_in(Executable& executable, cudaGraphNode_t node);

std::shared_ptr<Graph> make_graph();
/// The graph lives until graph_destroy().
cudaGraph_t adopt(const std::shared_ptr<Graph>& graph);
void graph_destroy(cudaGraph_t graph);
std::shared_ptr<Executable> instantiate(Graph& graph, unsigned long long flags);
cudaGraphExec_t graph_instantiate(cudaGraph_t graph, unsigned long long flags);
void graph_exec_destroy(cudaGraphExec_t exec);
void graph_launch(cudaGraphExec_t exec, cudaStream_t stream);
/// Takes the parameters of `graph`, which must have the same form. Errors: cudaErrorGraphExecUpdateFailure, with
/// `info`.
void graph_exec_update(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo& info);
void graph_node_destroy(cudaGraphNode_t node);
cudaGraphNode_t graph_add(cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                          std::shared_ptr<const Work> work);
cudaGraphNodeType type_of(const Node& node);
/// A copy for the program. Errors: cudaErrorNotSupported of graphs with conditional nodes.
cudaGraph_t graph_clone(cudaGraph_t graph);
cudaGraphNode_t node_in_clone(cudaGraphNode_t original, cudaGraph_t clone);
// Lists for the program: with nullptr for a list, `count` becomes the length that it must have.
void give_nodes(cudaGraph_t graph, bool roots_only, cudaGraphNode_t* nodes, size_t* count);
void give_edges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count);
/// Gives the nodes before a node, or after.
void give_neighbours(cudaGraphNode_t node, bool dependents, cudaGraphNode_t* nodes, size_t* count);
/// Adds or removes edges.
void change_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count, bool add);
/// Replaces a node's work by work of the same kind.
void replace_work(Node& node, std::shared_ptr<const Work> work);

}  // namespace emulator::cuda
