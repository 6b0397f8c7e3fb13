// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <vector>

/// The overlap of work that is captured into a graph: `operations`, and `longest`, the number that must run one after
/// the other.
struct Chain {
  cudaError_t error;  ///< from the capture: a host that waits inside, a stream that never joins
  int operations = 0, longest = 0;
};

/// The chain of the work that `enqueue` puts into `stream`, and into streams forked by events. Nothing runs.
template <class F>
Chain chain_of(cudaStream_t stream, F&& enqueue) {
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  enqueue();
  Chain chain{cudaStreamEndCapture(stream, &graph)};
  if (chain.error != cudaSuccess) return chain;
  size_t nodes = 0, edges = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
#if CUDART_VERSION >= 13000
#define WEFT_EDGES(from, to) cudaGraphGetEdges(graph, from, to, nullptr, &edges)
#else
#define WEFT_EDGES(from, to) cudaGraphGetEdges(graph, from, to, &edges)
#endif
  WEFT_EDGES(nullptr, nullptr);
  std::vector<cudaGraphNode_t> node(nodes), from(edges), to(edges);
  cudaGraphGetNodes(graph, node.data(), &nodes);
  WEFT_EDGES(from.data(), to.data());
#undef WEFT_EDGES
  std::map<cudaGraphNode_t, int> length;
  for (const cudaGraphNode_t one : node) length[one] = 1;
  for (size_t turn = 0; turn < nodes; ++turn)
    for (size_t e = 0; e < edges; ++e) length[to[e]] = std::max(length[to[e]], length[from[e]] + 1);
  chain.operations = static_cast<int>(nodes);
  for (const auto& [one, steps] : length) chain.longest = std::max(chain.longest, steps);
  cudaGraphDestroy(graph);
  return chain;
}
