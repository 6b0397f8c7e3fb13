// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/zero_redundancy_optimizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/autograd.h"
#include "dist/ddp/agreement.h"

namespace weft::dist {
namespace {

constexpr const char* kZeroWho = "zero redundancy optimizer";

/// The slice as the only one of a buffer.
FlatSlice alone(FlatSlice slice) {
  slice.offset = 0;
  return slice;
}

std::pair<std::string, std::string> split_name(const std::string& state) {
  const size_t dot = std::min(state.rfind('.'), state.size());
  return {state.substr(0, dot), state.substr(dot)};
}

}  // namespace

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(const optim::ParameterGroups& parameters, ProcessGroupPtr group,
                                                 const Maker& make)
    : group_(std::move(group)) {
  WEFT_CHECK(group_, kZeroWho, ": expected a group, got none");
  WEFT_CHECK(make, kZeroWho, ": expected a function that makes the optimizer, got none");
  const NoGrad no_grad;
  std::vector<NamedTensor> all;
  for (const optim::ParameterGroup& each : parameters)
    for (const NamedTensor& parameter : each.parameters)
      (parameter.tensor.requires_grad() ? all : frozen_).push_back(parameter);
  WEFT_CHECK(!all.empty(), kZeroWho, ": no parameter requires a gradient");
  flat_ = FlatParameters::of(all);
  check_replicas(*group_, *flat_, kZeroWho);
  const int64_t n = group_->size(), unit = FlatParameters::kAlignment * n;
  part_ = (flat_->numel() + unit - 1) / unit * FlatParameters::kAlignment;
  for (int r = 0; r < n; ++r) rows_.push_back(std::clamp<int64_t>(flat_->numel() - r * part_, 0, part_));

  std::map<const TensorImpl*, Tensor> shards;
  std::vector<FlatSlice> slices;
  for (const FlatSlice& slice : flat_->slices()) {
    if (std::ranges::none_of(all, [&](const NamedTensor& one) { return one.tensor.is_same(slice.parameter); }))
      continue;
    Part part{slice, std::clamp<int64_t>(first() - slice.offset, 0, slice.numel), 0, {}};
    part.length = std::clamp<int64_t>(first() + part_ - slice.offset, 0, slice.numel) - part.begin;
    Shape sizes{part.length};  // all dimensions are kept: rules by rank (no weight decay on vectors) still work
    while (sizes.rank() < slice.parameter.dim()) sizes.push_back(1);
    part.shard = Tensor::zeros(sizes, flat_->dtype(), flat_->device()).requires_grad_();
    shards.emplace(slice.parameter.impl(), part.shard);
    slices.push_back({slice.name, part.shard, std::clamp<int64_t>(slice.offset - first(), 0, part_), part.length});
    parts_.push_back(std::move(part));
  }
  const auto mine = FlatParameters::of(std::move(slices), part_);
  mine->divide({.is_divided = [](const Tensor&) { return true; },
                .gather =
                    [ranks = group_](const Tensor& own, const char* name) {
                      const Tensor every = Tensor::empty({ranks->size(), own.numel()}, own.dtype(), own.device());
                      ranks->all_gather(every, own, {.name = name, .scale = {}})->wait();
                      return every;
                    },
                .of_slices = true});
  std::vector<optim::ParameterGroup> groups = parameters;
  for (optim::ParameterGroup& each : groups) {
    each.parameters = optim::trainable(each.parameters);
    for (NamedTensor& parameter : each.parameters) parameter.tensor = shards.at(parameter.tensor.impl());
  }
  optimizer_ = make(groups);
  WEFT_CHECK(optimizer_ && optimizer_->flat() == mine, kZeroWho, ": expected an optimizer of the parts, got ",
             optimizer_ ? "one of other parameters" : "none");
  close();
}

void ZeroRedundancyOptimizer::close() {
  optimizer_->flat()->close(
      "these parameters are a zero redundancy optimizer's copies of its part. Call its own step() and zero_grad(), and "
      "clip_grad_norm() and Ema with the model's parameters and flat()");
}

void ZeroRedundancyOptimizer::step() {
  for (const NamedTensor& parameter : frozen_)
    WEFT_CHECK(!parameter.tensor.requires_grad(), kZeroWho, ": parameter '", parameter.name,
               "' was thawed after the optimizer had been made. Do it before");
  flat_->check_bound(kZeroWho);
  flat_->check_open(kZeroWho);
  const NoGrad no_grad;
  const int64_t own = rows_[static_cast<size_t>(group_->rank())];
  const std::shared_ptr<FlatParameters>& mine = optimizer_->flat();
  const auto whole_part = [&](const Tensor& buffer) { return buffer.slice(0, own > 0 ? first() : 0, own); };
  mine->master().slice(0, 0, own).copy_(whole_part(flat_->master()));
  mine->gradient().slice(0, 0, own).copy_(whole_part(flat_->gradient()));
  for (const Part& part : parts_) {
    if (part.whole.parameter.has_gradient())
      part.shard.impl()->autograd->grad_is_none = false;
    else
      part.shard.zero_grad();
  }
  mine->open();
  const std::shared_ptr<void> closing(nullptr, [this](void*) { close(); });
  optimizer_->step();
  const Tensor updated = whole_part(flat_->master());
  updated.copy_(mine->master().slice(0, 0, own));
  group_->all_gather(flat_->master(), updated, {.name = "parameters", .scale = {}, .rows = rows_})->wait();
  flat_->weights_changed(/*copied=*/false);
}

void ZeroRedundancyOptimizer::zero_grad() {
  for (const Part& part : parts_) part.whole.parameter.zero_grad();
  for (const NamedTensor& parameter : frozen_) parameter.tensor.zero_grad();
}

const ZeroRedundancyOptimizer::Part* ZeroRedundancyOptimizer::find(const std::string& state) const {
  const auto found = std::ranges::find(parts_, split_name(state).first, [](const Part& p) { return p.whole.name; });
  return found == parts_.end() ? nullptr : &*found;
}

StateDict ZeroRedundancyOptimizer::state_dict() const {
  const NoGrad no_grad;
  StateDict dict = optimizer_->state_dict();
  std::map<std::string, Tensor> kinds;  // exp_avg, …: this rank's part of all parameters
  for (const auto& [name, state] : dict.tensors) {
    const Part& part = *find(name);
    Tensor& own = kinds[split_name(name).second];
    if (!own.defined()) own = Tensor::zeros({part_}, flat_->dtype(), flat_->device());
    if (part.length > 0)
      own.slice(0, part.whole.offset + part.begin - first(), part.length).copy_(state.reshape({part.length}));
  }
  for (auto& [kind, own] : kinds) {
    const Tensor every = Tensor::empty({group_->size() * part_}, own.dtype(), own.device());
    group_->all_gather(every, own, {.name = "state" + kind, .scale = {}})->wait();
    own = every;
  }
  for (auto& [name, state] : dict.tensors)
    state = FlatParameters::place(kinds.at(split_name(name).second), find(name)->whole).clone();
  return dict;
}

void ZeroRedundancyOptimizer::load_state_dict(const StateDict& full) {
  const NoGrad no_grad;
  StateDict dict = full;
  for (auto& [name, state] : dict.tensors) {
    const Part* const part = find(name);
    WEFT_CHECK(part, kZeroWho, ": the state '", name, "' belongs to no trained parameter");
    WEFT_CHECK(state.sizes() == part->whole.parameter.sizes(), kZeroWho, ": expected the state '", name, "' ",
               part->whole.parameter.sizes(), ", got ", state);
    const Tensor flat = Tensor::empty({part->whole.numel}, flat_->dtype(), flat_->device());
    FlatParameters::place(flat, alone(part->whole)).copy_(state);
    state = flat.slice(0, part->begin, part->length).reshape(part->shard.sizes());
  }
  optimizer_->load_state_dict(dict);
}

}  // namespace weft::dist
