// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <vector>

#include "core/autograd.h"
#include "nn/module.h"

namespace weft::nn {

/// Every leaf that a backward from `y` would give a gradient.
inline std::set<const TensorImpl*> leaves_of(const Tensor& y) {
  std::set<const TensorImpl*> leaves;
  std::set<const Node*> seen;
  std::vector<const Node*> open{y.impl()->autograd->node.get()};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Node::Edge& edge : node->inputs) {
      if (edge.leaf) leaves.insert(edge.leaf.get());
      if (edge.node) open.push_back(edge.node.get());
    }
  }
  return leaves;
}

/// How many tensors take part in y = model(x) and want a gradient without being named by fields().
inline size_t forgotten_members(Module& model, const Tensor& x) {
  std::set<const TensorImpl*> leaves = leaves_of(model(x));
  for (const NamedTensor& parameter : model.parameters()) leaves.erase(parameter.tensor.impl());
  return leaves.size();
}

/// How many named parameters take no part in it.
inline size_t idle_members(Module& model, const Tensor& x) {
  const std::set<const TensorImpl*> leaves = leaves_of(model(x));
  size_t idle = 0;
  for (const NamedTensor& parameter : model.parameters()) idle += !leaves.contains(parameter.tensor.impl());
  return idle;
}

}  // namespace weft::nn
