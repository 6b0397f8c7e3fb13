// SPDX-License-Identifier: Apache-2.0
#include "dist/pipeline/pipeline_state.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "core/autograd.h"
#include "dist/tensor/tensor_parallel_state.h"

namespace weft::dist {
namespace {

/// `fc.weight` of itself and of `fc.weight.exp_avg`; empty: of no parameter or buffer.
std::string owner_of(const Pipeline& pipeline, const std::string& name) {
  const auto known = [&](const std::string& one) {
    return std::ranges::find(pipeline.names(), one) != pipeline.names().end();
  };
  if (known(name)) return name;
  const std::string front = name.substr(0, std::min(name.rfind('.'), name.size()));
  return known(front) ? front : "";
}

/// The states of all stages' first ranks joined on rank 0; a tied tensor once.
StateDict joined(Pipeline& pipeline, StateDict own) {
  const Grid& grid = pipeline.grid();
  if (grid.data_rank() > 0 || grid.model_rank() > 0) return {};
  ProcessGroup& pipe = *grid.pipe();
  const Device device = pipeline.tensor().module().device();
  std::erase_if(own.tensors, [&](const NamedTensor& entry) {
    return pipeline.first_stage(owner_of(pipeline, entry.name)) != pipe.rank();
  });
  std::string list;  // name, dtype, sizes
  for (const auto& [name, tensor] : own.tensors) {
    list += name + ' ' + std::to_string(static_cast<int>(tensor.dtype()));
    for (const int64_t size : tensor.sizes()) list += ' ' + std::to_string(size);
    list += '\n';
  }
  const std::vector<std::string> lists = pipe.all_gather_text(list, "state of the stages");
  for (int stage = 1; stage < pipe.size(); ++stage) {
    if (pipe.rank() == stage)
      for (const auto& [name, tensor] : own.tensors)
        pipe.send(tensor.to(device).contiguous(), 0, {.name = name, .scale = {}})->wait();
    if (pipe.rank() > 0) continue;
    std::istringstream lines(lists[static_cast<size_t>(stage)]);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name;
      int dtype = 0;
      words >> name >> dtype;
      std::vector<int64_t> sizes;
      for (int64_t size = 0; words >> size;) sizes.push_back(size);
      const Tensor tensor = Tensor::empty(Shape(sizes), static_cast<DType>(dtype), device);
      pipe.receive(tensor, stage, {.name = name, .scale = {}})->wait();
      own.tensors.push_back({name, tensor.to(Device{})});
    }
  }
  if (pipe.rank() > 0) return {};
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < pipeline.names().size(); ++i) places.emplace(pipeline.names()[i], i);
  std::ranges::stable_sort(own.tensors, {},
                           [&](const NamedTensor& entry) { return places[owner_of(pipeline, entry.name)]; });
  return own;
}

/// This rank's part of a full state, and entries without an owner.
StateDict own_part(const Pipeline& pipeline, const StateDict& full) {
  StateDict own{{}, full.scalars};
  for (const NamedTensor& entry : full.tensors) {
    const std::string owner = owner_of(pipeline, entry.name);
    if (owner.empty() || pipeline.has(owner)) own.tensors.push_back(entry);
  }
  return own;
}

/// The first stage of a tied tensor saves it.
ShardedState of_stage(const Pipeline& pipeline, ShardedState state) {
  for (TensorPiece& piece : state.pieces)
    if (pipeline.first_stage(owner_of(pipeline, piece.name)) != pipeline.grid().pipe()->rank()) piece.is_copy = true;
  state.is_elsewhere = [&pipeline](const std::string& name) {
    const std::string owner = owner_of(pipeline, name);
    return !owner.empty() && !pipeline.has(owner);
  };
  return state;
}

}  // namespace

StateDict full_state_dict(Pipeline& pipeline) {
  const NoGrad no_grad;
  return joined(pipeline, full_state_dict(pipeline.tensor()));
}

void load_full_state_dict(Pipeline& pipeline, const StateDict& full) {
  load_full_state_dict(pipeline.tensor(), own_part(pipeline, full));
}

StateDict full_optimizer_state(Pipeline& pipeline, const StateDict& own) {
  const NoGrad no_grad;
  return joined(pipeline, full_optimizer_state(pipeline.tensor(), own));
}

StateDict part_of_optimizer_state(const Pipeline& pipeline, const StateDict& full) {
  return part_of_optimizer_state(pipeline.tensor(), own_part(pipeline, full));
}

ShardedState sharded_state(Pipeline& pipeline) { return of_stage(pipeline, sharded_state(pipeline.tensor())); }
ShardedState sharded_state(Pipeline& pipeline, const StateDict& optimizer) {
  return of_stage(pipeline, sharded_state(pipeline.tensor(), optimizer));
}

ShardedState Pipeline::sharded_model() { return sharded_state(*this); }
ShardedState Pipeline::sharded(const StateDict& part) { return sharded_state(*this, part); }
StateDict Pipeline::model_state() { return full_state_dict(*this); }
StateDict Pipeline::gathered(const StateDict& part) { return full_optimizer_state(*this, part); }
StateDict Pipeline::part_of(const StateDict& whole) { return part_of_optimizer_state(*this, whole); }
void Pipeline::load_model(const std::string&, const StateDict& model) { load_full_state_dict(*this, model); }

std::string Pipeline::describe() const {
  return str("pipeline, ", grid().pipe()->size(), " stages of ", chunks(), chunks() == 1 ? " chunk, " : " chunks, ",
             grid().data()->size(), " data x ", grid().model()->size(), " model ranks");
}

}  // namespace weft::dist
