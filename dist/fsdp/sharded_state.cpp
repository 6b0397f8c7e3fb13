// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/sharded_state.h"

#include <unordered_map>
#include <utility>

#include "core/autograd.h"

namespace weft::dist {
namespace {

/// Visits buffers and counters; derived visitors handle parameters.
struct Pieces : nn::Visitor {
  explicit Pieces(int own_rank) : rank(own_rank) {}
  int rank;
  ShardedState state;

  void whole(const std::string& path, const Tensor& tensor, nn::Layout layout) {
    WEFT_CHECK(tensor.is_contiguous(), "sharded state: '", path, "' ", tensor, " is not dense");
    state.pieces.push_back({path, tensor.sizes(), layout, 0, tensor.detach().reshape({tensor.numel()}), rank != 0});
  }
  void parameter(const std::string& path, Tensor& tensor, nn::Layout layout) override { whole(path, tensor, layout); }
  void buffer_at(const std::string& path, Tensor& tensor) override { whole(path, tensor, nn::Layout::as_stored); }
  void counter_at(const std::string& path, int64_t& value) override {
    state.pieces.push_back(
        {path, Shape{}, nn::Layout::as_stored, 0, Tensor::from(std::vector<int64_t>{value}), rank != 0, &value});
  }
};

struct ShardPieces : Pieces {
  ShardPieces(FSDP& fsdp) : Pieces(fsdp.group()->rank()), replica(fsdp.replica()) {
    for (const auto& unit : fsdp.units())
      for (const auto& shard : unit->shards())
        for (const ShardedParameter& p : shard->parameters())
          parts.emplace(p.parameter.impl(), std::pair(&p, shard->part(shard->master(), p)));
  }
  int replica;
  std::unordered_map<const TensorImpl*, std::pair<const ShardedParameter*, Tensor>> parts;

  void parameter(const std::string& path, Tensor& tensor, nn::Layout layout) override {
    const auto& [p, part] = parts.at(tensor.impl());
    state.pieces.push_back({path, tensor.sizes(), layout, p->begin, part, replica != 0});
  }
};

}  // namespace

ShardedState sharded_state(FSDP& fsdp) {
  const NoGrad no_grad;
  ShardPieces visitor(fsdp);
  fsdp.module().fields(visitor);
  return std::move(visitor.state);
}

ShardedState sharded_state(FSDP& fsdp, const StateDict& optimizer) {
  const NoGrad no_grad;
  std::unordered_map<std::string, const ShardedParameter*> trained;
  for (const auto& unit : fsdp.units())
    for (const auto& gradient : unit->gradients())
      for (const ShardedParameter& p : gradient->shard().parameters()) trained.emplace(p.name, &p);
  ShardedState state;
  state.scalars = optimizer.scalars;
  for (const auto& [name, tensor] : optimizer.tensors) {
    const auto found = trained.find(name.substr(0, name.rfind('.')));
    WEFT_CHECK(found != trained.end() && found->second->shard.sizes() == tensor.sizes(), "sharded state: '", name, "' ",
               tensor, " is not of an optimizer over fsdp.parameters()");
    const ShardedParameter& p = *found->second;
    state.pieces.push_back(
        {name, p.parameter.sizes(), nn::Layout::as_stored, p.begin, tensor.reshape({p.length}), fsdp.replica() != 0});
  }
  return state;
}

ShardedState sharded_state(nn::Module& model, int rank) {
  const NoGrad no_grad;
  Pieces visitor(rank);
  model.fields(visitor);
  return std::move(visitor.state);
}

ShardedState sharded_state(const StateDict& optimizer, int rank) {
  const NoGrad no_grad;
  Pieces visitor(rank);
  for (const auto& [name, tensor] : optimizer.tensors) visitor.whole(name, tensor, nn::Layout::as_stored);
  visitor.state.scalars = optimizer.scalars;
  return std::move(visitor.state);
}

}  // namespace weft::dist
