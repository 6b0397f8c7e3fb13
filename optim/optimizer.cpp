// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include <unordered_set>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/text.h"
#include "core/trace.h"

namespace weft::optim {
namespace {

Tensor part(const Tensor& flat, FlatRange range) {
  return flat.defined() ? flat.slice(0, range.offset, range.numel) : Tensor();
}

}  // namespace

std::vector<NamedTensor> trainable(const std::vector<NamedTensor>& parameters) {
  std::vector<NamedTensor> result;
  for (const NamedTensor& parameter : parameters)
    if (parameter.tensor.requires_grad()) result.push_back(parameter);
  return result;
}

std::vector<ParameterGroup> without_decay_on_vectors(const std::vector<NamedTensor>& parameters) {
  ParameterGroup weights, vectors;
  vectors.weight_decay = 0;
  for (const NamedTensor& parameter : parameters)
    (parameter.tensor.dim() <= 1 ? vectors : weights).parameters.push_back(parameter);
  return {weights, vectors};
}

Optimizer::Optimizer(const char* name, const std::vector<ParameterGroup>& given_groups, double lr, double weight_decay,
                     std::vector<std::string> states)
    : name_(name), state_names_(std::move(states)) {
  std::vector<NamedTensor> all;
  for (const ParameterGroup& given : given_groups) {
    Group group{trainable(given.parameters),
                {},
                given.lr.value_or(lr),
                given.lr.value_or(lr),
                given.weight_decay.value_or(weight_decay)};
    WEFT_CHECK(group.lr >= 0, name, ": expected a learning rate of at least 0, got ", group.lr);
    WEFT_CHECK(group.weight_decay >= 0, name, ": expected a weight decay of at least 0, got ", group.weight_decay);
    if (group.parameters.empty()) continue;
    all.insert(all.end(), group.parameters.begin(), group.parameters.end());
    groups_.push_back(std::move(group));
  }
  WEFT_CHECK(!all.empty(), name, ": no parameter requires a gradient");

  const OpScope scope(name);
  const NoGrad no_grad;
  flat_ = FlatParameters::of(all);
  for (Group& group : groups_) group.ranges = flat_->ranges(group.parameters);
  for (size_t i = 0; i < state_names_.size(); ++i)
    states_.push_back(Tensor::zeros({flat_->numel()}, flat_->dtype(), flat_->device()));
  scalars_ = Tensor::zeros({groups(), kScalars}, flat_->dtype(), flat_->device());
  scalars_.select(1, kGradientScale).fill_(1);
  one_ = Tensor::ones({groups()}, flat_->dtype(), flat_->device());
  for (int group = 0; group < groups(); ++group) set_lr(base_lr(group), group);
}

void Optimizer::set_lr(double lr, int group) {
  WEFT_CHECK(group >= 0 && group < groups(), name_, ": set_lr: there are ", groups(), " groups, got ", group);
  refuse_while_capturing("set_lr", flat_->device());  // a graph would repeat this rate forever
  groups_[static_cast<size_t>(group)].lr = lr;
  scalars_.select(0, group).select(0, kLr).fill_(lr);
}

void Optimizer::set_lr(double lr) {
  for (int group = 0; group < groups(); ++group) set_lr(lr, group);
}

int64_t Optimizer::steps() const { return static_cast<int64_t>(scalars_.select(0, 0).select(0, kStep).item()); }

void Optimizer::step() {
  const OpScope scope(name_);
  const NoGrad no_grad;
  flat_->check_bound(name_);
  check_no_unclaimed_leaf(name_);
  scalars_.select(1, kStep).add_(one_);
  update_all();
  on_each_run([flat = flat_] { flat->weights_changed(/*copied=*/true); });
}

void Optimizer::update_all() {
  for (int group = 0; group < groups(); ++group)
    for (const FlatRange& place : groups_[static_cast<size_t>(group)].ranges) update(range(group, place));
}

Optimizer::Range Optimizer::range(int group, FlatRange place) {
  std::vector<Tensor> states;
  for (const Tensor& state : states_) states.push_back(part(state, place));
  return {part(flat_->master(), place),
          part(flat_->gradient(), place),
          part(flat_->compute_copy(), place),
          scalars_.select(0, group),
          std::move(states),
          groups_[static_cast<size_t>(group)].weight_decay};
}

StateDict Optimizer::state_dict() const {
  const NoGrad no_grad;
  std::unordered_set<const TensorImpl*> mine;
  for (const Group& group : groups_)
    for (const NamedTensor& parameter : group.parameters) mine.insert(parameter.tensor.impl());
  StateDict dict;
  for (const FlatSlice& slice : flat_->slices()) {
    if (!mine.contains(slice.parameter.impl())) continue;
    for (size_t i = 0; i < states_.size(); ++i)
      dict.tensors.push_back({slice.name + '.' + state_names_[i], FlatParameters::place(states_[i], slice)});
  }
  dict.tensors.insert(dict.tensors.end(), own_states_.begin(), own_states_.end());
  dict.scalars.push_back({"step", static_cast<double>(steps())});
  for (int group = 0; group < groups(); ++group) dict.scalars.push_back({str("group", group, ".lr"), lr(group)});
  return dict;
}

void Optimizer::load_state_dict(const StateDict& dict) {
  const NoGrad no_grad;
  const StateDict mine = state_dict();
  std::vector<std::string> missing, unexpected, misshapen;
  std::unordered_set<std::string> known;
  for (const auto& [name, tensor] : mine.tensors) {
    known.insert(name);
    const Tensor given = dict.tensor(name);
    if (!given.defined())
      missing.push_back(name);
    else if (given.sizes() != tensor.sizes())
      misshapen.push_back(str(name, " (expected ", tensor.sizes(), ", got ", given.sizes(), ")"));
  }
  for (const NamedTensor& given : dict.tensors)
    if (!known.contains(given.name)) unexpected.push_back(given.name);
  const std::string last_group = str("group", groups() - 1, ".lr"), next_group = str("group", groups(), ".lr");
  bool has_last = false, has_next = false, has_step = false;
  for (const NamedScalar& given : dict.scalars) {
    has_last |= given.name == last_group;
    has_next |= given.name == next_group;
    has_step |= given.name == "step";
  }

  constexpr size_t kShown = 5;
  std::string text;
  if (!misshapen.empty()) text += "; wrong shape: " + joined(misshapen, kShown);
  if (!missing.empty()) text += "; missing: " + joined(missing, kShown);
  if (!unexpected.empty()) text += "; unexpected: " + joined(unexpected, kShown);
  if (!has_step) text += "; missing: the step count";
  if (!has_last || has_next) text += str("; expected ", groups(), " parameter groups");
  WEFT_CHECK(text.empty(), name_, ": the saved state does not fit", text);

  for (const auto& [name, tensor] : mine.tensors) tensor.copy_(dict.tensor(name));
  scalars_.select(1, kStep).fill_(dict.scalar("step"));
  for (int group = 0; group < groups(); ++group) set_lr(dict.scalar(str("group", group, ".lr")), group);
}

}  // namespace weft::optim
