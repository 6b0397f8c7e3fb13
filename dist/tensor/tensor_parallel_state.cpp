// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/tensor_parallel_state.h"

#include <algorithm>
#include <unordered_map>

#include "core/autograd.h"
#include "dist/fsdp/fsdp_state.h"

namespace weft::dist {
namespace {

/// The whole tensor on the CPU; undefined on all ranks but the first of the model group.
Tensor gathered(const TensorParallel& parallel, const std::string& name, const Tensor& part, Partition partition) {
  const Grid& grid = parallel.grid();
  const bool first = grid.model_rank() == 0;
  const int n = grid.model()->size();
  if (partition.is_whole() || n == 1) return first ? part.detach().to(Device{}).clone() : Tensor();
  const Tensor dense = part.detach().contiguous().to(parallel.module().device());
  const Tensor all = Tensor::empty({n * dense.numel()}, dense.dtype(), dense.device());
  grid.model()->all_gather(all, dense, {.name = "part of " + name, .scale = {}})->wait();
  if (!first) return {};
  std::vector<Tensor> parts;
  for (int r = 0; r < n; ++r)
    parts.push_back(all.slice(0, r * dense.numel(), dense.numel()).to(Device{}).reshape(dense.sizes()));
  return partition.whole(parts);
}

/// `fc.weight.exp_avg` belongs to `fc.weight`.
std::string parameter_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  WEFT_CHECK(dot != std::string::npos, "tensor_parallel: optimizer state: expected names like fc.weight.exp_avg, got '",
             name, "'");
  return name.substr(0, dot);
}

std::unordered_map<std::string, Tensor> by_name(const std::vector<NamedTensor>& tensors) {
  std::unordered_map<std::string, Tensor> result;
  for (const auto& [name, tensor] : tensors) result.emplace(name, tensor);
  return result;
}

/// Pieces of this rank's parts as pieces of whole tensors. A model rank's copy of a whole tensor is a copy.
ShardedState in_whole(const TensorParallel& parallel, ShardedState state) {
  const Grid& grid = parallel.grid();
  const int n = grid.model()->size();
  for (TensorPiece& piece : state.pieces) {
    Partition partition = parallel.partition(piece.name);
    if (partition.is_whole()) partition = parallel.partition(piece.name.substr(0, piece.name.rfind('.')));
    if (partition.is_whole()) piece.is_copy = piece.is_copy || grid.model_rank() > 0;
    if (partition.is_whole() || n == 1) continue;
    piece.of = partition.strided(piece.sizes, grid.model_rank(), n);
    if (partition.size > 0) {  // the padding belongs to no whole tensor
      WEFT_CHECK(partition.dim == 0, "tensor_parallel: '", piece.name, "': expected shares of rows");
      piece.values = piece.values.slice(
          0, 0, std::clamp<int64_t>(piece.of.run - piece.begin, 0, piece.values.numel()));
    }
    piece.sizes = partition.whole_sizes(piece.sizes, n);
  }
  return state;
}

}  // namespace

StateDict full_state_dict(TensorParallel& parallel) {
  const NoGrad no_grad;
  const Grid& grid = parallel.grid();
  const StateDict parts = parallel.fsdp() ? full_state_dict(*parallel.fsdp()) : parallel.module().state_dict();
  StateDict full;
  if (grid.data_rank() > 0) return full;
  for (const auto& [name, tensor] : parts.tensors)
    full.tensors.push_back({name, gathered(parallel, name, tensor, parallel.partition(name))});
  return grid.model_rank() == 0 ? full : StateDict();
}

nn::LoadReport load_full_state_dict(TensorParallel& parallel, const StateDict& full, nn::LoadOptions options) {
  const NoGrad no_grad;
  const Grid& grid = parallel.grid();
  const int n = grid.model()->size();
  const auto own = by_name(parallel.module().parameter_names());
  StateDict parts{{}, full.scalars};
  std::vector<std::string> misshapen;
  const std::vector<std::string> names = names_of(full);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const Tensor& given = full.tensors[i].tensor;
    const Partition partition = parallel.partition(name);
    const auto mine = own.find(name);
    if (partition.is_whole() || mine == own.end()) {
      parts.tensors.push_back({name, given});
      continue;
    }
    const Shape expected = partition.whole_sizes(mine->second.sizes(), n);
    if (given.sizes() == expected)
      parts.tensors.push_back({name, partition.part(given, grid.model_rank(), n)});
    else
      misshapen.push_back(str(name, " (expected ", expected, ", got ", given.sizes(), ")"));
  }
  WEFT_CHECK(misshapen.empty(), "load_state_dict: the weights do not fit ", parallel.module().kind(),
             mismatch_text(misshapen, {}, {}));
  if (parallel.fsdp()) return load_full_state_dict(*parallel.fsdp(), parts, options);
  return parallel.module().load_state_dict(parts, options);
}

StateDict full_optimizer_state(TensorParallel& parallel, const StateDict& own) {
  const NoGrad no_grad;
  const Grid& grid = parallel.grid();
  const StateDict parts = parallel.fsdp() ? full_optimizer_state(*parallel.fsdp(), own) : own;
  if (grid.data_rank() > 0) return {};
  const auto parameters = by_name(parallel.module().parameters());
  StateDict full{{}, own.scalars};
  for (const auto& [name, tensor] : parts.tensors) {
    const auto found = parameters.find(parameter_of(name));
    WEFT_CHECK(found != parameters.end() && found->second.sizes() == tensor.sizes(),
               "tensor_parallel: optimizer state: '", name, "' ", tensor, " is not of an optimizer over parameters()");
    full.tensors.push_back({name, gathered(parallel, name, tensor, parallel.partition(found->first))});
  }
  return grid.model_rank() == 0 ? full : StateDict();
}

StateDict part_of_optimizer_state(const TensorParallel& parallel, const StateDict& full) {
  const NoGrad no_grad;
  const Grid& grid = parallel.grid();
  const int n = grid.model()->size();
  const auto parameters = by_name(parallel.module().parameters());
  StateDict own{{}, full.scalars};
  for (const auto& [name, tensor] : full.tensors) {
    const auto found = parameters.find(parameter_of(name));
    WEFT_CHECK(found != parameters.end(), "tensor_parallel: optimizer state: '", name, "' belongs to no parameter");
    const Partition partition = parallel.partition(found->first);
    const Shape expected = partition.whole_sizes(found->second.sizes(), n);
    WEFT_CHECK(tensor.sizes() == expected, "tensor_parallel: optimizer state: expected '", name, "' ", expected,
               ", got ", tensor);
    own.tensors.push_back({name, partition.part(tensor, grid.model_rank(), n)});
  }
  return parallel.fsdp() ? shard_optimizer_state(*parallel.fsdp(), own) : own;
}

ShardedState sharded_state(TensorParallel& parallel) {
  return in_whole(parallel, parallel.fsdp() ? sharded_state(*parallel.fsdp())
                                            : sharded_state(parallel.module(), parallel.grid().data_rank()));
}

ShardedState sharded_state(TensorParallel& parallel, const StateDict& optimizer) {
  return in_whole(parallel, parallel.fsdp() ? sharded_state(*parallel.fsdp(), optimizer)
                                            : sharded_state(optimizer, parallel.grid().data_rank()));
}

ShardedState TensorParallel::sharded_model() { return sharded_state(*this); }
ShardedState TensorParallel::sharded(const StateDict& part) { return sharded_state(*this, part); }
StateDict TensorParallel::model_state() { return full_state_dict(*this); }
StateDict TensorParallel::gathered(const StateDict& part) { return full_optimizer_state(*this, part); }
StateDict TensorParallel::part_of(const StateDict& whole) { return part_of_optimizer_state(*this, whole); }
void TensorParallel::load_model(const std::string&, const StateDict& model) { load_full_state_dict(*this, model); }

std::string TensorParallel::describe() const {
  return str("tensor, ", grid_.data()->size(), " data x ", grid_.model()->size(), " model ranks",
             fsdp_ ? ", " + fsdp_->describe() : "");
}

}  // namespace weft::dist
