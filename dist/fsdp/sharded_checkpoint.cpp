// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/sharded_checkpoint.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/autograd.h"
#include "dist/fsdp/fsdp_schedule.h"

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

namespace {

using Entry = CheckpointIndex::Entry;

/// A checkpoint of a whole model has convolution weights as its state dict shows them, OIHW; a piece of one is OHWI.
bool is_turned(const Entry& entry, const TensorPiece& piece) {
  return piece.layout == nn::Layout::ohwi && !entry.is_ohwi && entry.sizes.rank() >= 3;
}

Shape sizes_for(const Entry& entry, const TensorPiece& piece) {
  return is_turned(entry, piece) ? from_file_order(entry.sizes) : entry.sizes;
}

std::unordered_map<std::string, const Entry*> by_name(const CheckpointIndex::Part& part) {
  std::unordered_map<std::string, const Entry*> entries;
  for (const Entry& entry : part.tensors) entries.emplace(entry.name, &entry);
  return entries;
}

}  // namespace

void ShardedCheckpoint::check_fit(const std::string& name, const ShardedState& state) const {
  const CheckpointIndex::Part& part = reader_.part(name);
  const auto saved = by_name(part);
  std::vector<std::string> missing, misshapen, unexpected;
  std::unordered_set<std::string> known;
  for (const TensorPiece& piece : state.pieces) {
    if (!known.insert(piece.name).second) continue;
    const auto found = saved.find(piece.name);
    if (found == saved.end())
      missing.push_back(piece.name);
    else if (const Shape got = sizes_for(*found->second, piece); got != piece.sizes)
      misshapen.push_back(str(piece.name, " (expected ", piece.sizes, ", got ", got, ")"));
  }
  for (const Entry& entry : part.tensors)
    if (!known.contains(entry.name) && !(state.is_elsewhere && state.is_elsewhere(entry.name)))
      unexpected.push_back(entry.name);
  const std::string text = mismatch_text(misshapen, missing, unexpected);
  WEFT_CHECK(text.empty(), reader_.where(), ": part '", name, "' does not fit", text);
}

void ShardedCheckpoint::load(const std::vector<std::pair<std::string, ShardedState*>>& parts) const {
  const NoGrad no_grad;
  std::vector<WantedPiece> wanted;
  for (const auto& [name, state] : parts) {
    WEFT_CHECK(state, reader_.where(), ": part '", name, "': expected a state to load into, got none");
    check_fit(name, *state);
    const auto saved = by_name(reader_.part(name));
    for (const TensorPiece& piece : state->pieces)
      wanted.push_back(is_turned(*saved.at(piece.name), piece)
                           ? WantedPiece{name, piece.name}
                           : WantedPiece{name, piece.name, piece.begin, piece.values, piece.of});
  }
  reader_.read(wanted);
  auto got = wanted.begin();
  for (const auto& [name, state] : parts) {
    const auto saved = by_name(reader_.part(name));
    for (const TensorPiece& piece : state->pieces) {
      const Tensor values = (got++)->values;
      const int64_t count = piece.values.numel();
      if (is_turned(*saved.at(piece.name), piece))
        piece.values.copy_(from_file_order(values).contiguous().flatten().slice(0, piece.begin, count));
      if (piece.counter) *piece.counter = static_cast<int64_t>(piece.values.item());
    }
    state->scalars = reader_.part(name).scalars;
  }
}

}  // namespace weft::dist
