// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_set>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/text.h"
#include "core/trace.h"
#include "optim/saved_count.h"

namespace weft::optim {
namespace {

Tensor part(const Tensor& flat, FlatRange range) {
  return flat.defined() ? flat.slice(0, range.offset, range.numel) : Tensor();
}

void check_rate(const char* name, double lr) {
  WEFT_CHECK(lr >= 0 && std::isfinite(lr), name, ": expected a finite learning rate of at least 0, got ", lr);
}

}  // namespace

ParameterGroups::ParameterGroups(const std::vector<ParameterGroup>& groups) : vector(groups) {}
ParameterGroups::ParameterGroups(std::initializer_list<ParameterGroup> groups) : vector(groups) {}
ParameterGroups::ParameterGroups(const std::vector<NamedTensor>& parameters) { push_back({.parameters = parameters}); }
ParameterGroups::ParameterGroups(std::initializer_list<NamedTensor> parameters)
    : ParameterGroups(std::vector<NamedTensor>(parameters)) {}

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

Rates::operator double() const {
  WEFT_CHECK(!empty() && std::count(begin(), end(), front()) == static_cast<ptrdiff_t>(size()),
             "learning rates: the groups have ", size(),
             " different ones, expected one number. Write "
             "optimizer.set_lr(schedule.lr(step, optimizer.base_lr())), or go from group to group");
  return front();
}

double steps_of(const StateDict& state, const std::string& parameter) {
  for (const NamedScalar& entry : state.scalars)
    if (entry.name == parameter + ".step") return entry.value;
  return state.scalar("step");
}

Optimizer::~Optimizer() = default;

void Optimizer::add_state(std::string name, Tensor state) {
  own_states_.push_back({std::move(name), std::move(state)});
}

Optimizer::Optimizer(const char* name, const std::vector<ParameterGroup>& given_groups, double lr, double weight_decay,
                     std::vector<std::string> states)
    : name_(name), state_names_(std::move(states)), state_begins_(state_names_.size(), 0.0) {
  std::vector<NamedTensor> all;
  for (const ParameterGroup& given : given_groups) {
    Group group{trainable(given.parameters),
                {},
                given.lr.value_or(lr),
                given.lr.value_or(lr),
                given.weight_decay.value_or(weight_decay)};
    for (const NamedTensor& parameter : given.parameters)
      WEFT_CHECK(parameter.tensor.defined(), name, ": parameter '", parameter.name, "' is an undefined tensor");
    check_rate(name, group.lr);
    WEFT_CHECK(group.weight_decay >= 0 && std::isfinite(group.weight_decay), name,
               ": expected a finite weight decay of at least 0, got ", group.weight_decay);
    for (const NamedTensor& parameter : given.parameters)
      if (!parameter.tensor.requires_grad()) group.frozen.push_back(parameter);
    all.insert(all.end(), group.parameters.begin(), group.parameters.end());
    groups_.push_back(std::move(group));
  }
  WEFT_CHECK(!all.empty(), name, ": no parameter requires a gradient");

  const OpScope scope(name);
  const NoGrad no_grad;
  flat_ = FlatParameters::of(all);
  for (size_t i = 0; i < state_names_.size(); ++i)
    states_.push_back(Tensor::zeros({flat_->numel()}, flat_->dtype(), flat_->device()));
  for (int group = 0; group < groups(); ++group) add_rows(group, groups_[static_cast<size_t>(group)].parameters);
  std::vector<int64_t> first;  // as if all had a gradient
  for (const Row& row : rows_)
    first.push_back(std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.group == row.group; }) -
                    rows_.begin());
  arrange(std::move(first));
}

void Optimizer::add_rows(int group, const std::vector<NamedTensor>& parameters) {
  if (parameters.empty()) return;
  for (const NamedTensor& parameter : parameters) rows_.push_back({parameter, group});
  const auto rows = static_cast<int64_t>(rows_.size());
  const Tensor longer = Tensor::zeros({rows, kScalars}, flat_->dtype(), flat_->device());
  longer.select(1, kGradientScale).fill_(1);
  if (scalars_.defined()) longer.slice(0, 0, scalars_.size(0)).copy_(scalars_);
  scalars_ = longer;
  ones_ = Tensor::ones({rows}, flat_->dtype(), flat_->device());
  set_lr(lr(group), group);
}

void Optimizer::for_rows(const std::function<bool(size_t)>& wanted,
                         const std::function<void(const Tensor& rows)>& function) const {
  for (size_t first = 0; first < rows_.size(); ++first) {
    size_t last = first;
    while (last < rows_.size() && wanted(last)) ++last;
    if (last > first) function(scalars_.slice(0, static_cast<int64_t>(first), static_cast<int64_t>(last - first)));
    first = std::max(first, last);  // row `last` is not wanted
  }
}

const Optimizer::Group& Optimizer::group_at(int group) const {
  WEFT_CHECK(group >= 0 && group < groups(), name_, ": expected a group from 0 to ", groups() - 1, ", got ", group);
  return groups_[static_cast<size_t>(group)];
}

void Optimizer::set_lr(double lr, int group) {
  WEFT_CHECK(group >= 0 && group < groups(), name_, ": set_lr: there are ", groups(), " groups, got ", group);
  check_rate(name_, lr);
  refuse_while_capturing("set_lr", flat_->device());  // a graph would repeat this rate forever
  groups_[static_cast<size_t>(group)].lr = lr;
  for_rows([&](size_t row) { return rows_[row].group == group; },
           [&](const Tensor& rows) { rows.select(1, kLr).fill_(lr); });
}

void Optimizer::set_lr(double lr) {
  for (const Group& group : groups_)
    WEFT_CHECK(group.base_lr == groups_[0].base_lr, name_, ": set_lr(", lr, "): ", groups(),
               " groups have rates of their own (", groups_[0].base_lr, " and ", group.base_lr,
               "), which one rate would replace. Write set_lr(schedule.lr(step, optimizer.base_lr())), or "
               "set_lr(rate, group)");
  for (int group = 0; group < groups(); ++group) set_lr(lr, group);
}

void Optimizer::set_lr(const Rates& rates) {
  WEFT_CHECK(rates.size() == groups_.size(), name_, ": set_lr: expected ", groups_.size(),
             " rates, one per group, got ", rates.size());
  for (const double rate : rates) check_rate(name_, rate);
  for (int group = 0; group < groups(); ++group) set_lr(rates[static_cast<size_t>(group)], group);
}

Rates Optimizer::lr() const {
  Rates rates;
  for (const Group& group : groups_) rates.push_back(group.lr);
  return rates;
}

Rates Optimizer::base_lr() const {
  Rates rates;
  for (const Group& group : groups_) rates.push_back(group.base_lr);
  return rates;
}

int64_t Optimizer::steps() const {
  int64_t most = 0;
  for (const Row& row : rows_) most = std::max(most, row.steps);
  return most;
}

void Optimizer::fill_state(size_t state, double value) {
  state_begins_.at(state) = value;
  states_.at(state).fill_(value);
}

void Optimizer::zero_grad() {
  flat_->check_open(name_);
  for (const Group& group : groups_)
    for (const auto* list : {&group.parameters, &group.frozen})
      for (const NamedTensor& parameter : *list) parameter.tensor.zero_grad();
}

void Optimizer::take_in_thawed() {
  for (int g = 0; g < groups(); ++g) {
    Group& group = groups_[static_cast<size_t>(g)];
    const std::vector<NamedTensor> thawed = trainable(group.frozen);
    if (thawed.empty()) continue;
    refuse_while_capturing("a thawed parameter", flat_->device());
    std::vector<NamedTensor> others;
    for (const NamedTensor& parameter : thawed) {
      const std::shared_ptr<FlatParameters> flat = parameter.tensor.impl()->autograd->flat.lock();
      WEFT_CHECK(!flat || flat == flat_, name_, ": parameter '", parameter.name, "' ", parameter.tensor,
                 " was thawed, and lies in the flat buffers of another optimizer by now. Thaw it before the first of "
                 "the two is made");
      if (!flat) others.push_back(parameter);
    }
    if (!others.empty()) flat_->add(others);
    std::erase_if(group.frozen, [](const NamedTensor& parameter) { return parameter.tensor.requires_grad(); });
    group.parameters.insert(group.parameters.end(), thawed.begin(), thawed.end());
    add_rows(g, thawed);
    for (const NamedTensor& parameter : thawed) added(g, parameter);
  }
  for (size_t i = 0; i < states_.size(); ++i) FlatParameters::lengthen(states_[i], flat_->numel(), state_begins_[i]);
}

std::vector<int64_t> Optimizer::leaders() const {
  std::map<std::pair<int, int64_t>, int64_t> first;
  std::vector<int64_t> result;
  for (const Row& row : rows_)
    result.push_back(row.parameter.tensor.has_gradient()
                         ? first.try_emplace({row.group, row.steps}, static_cast<int64_t>(result.size())).first->second
                         : -1);
  return result;
}

void Optimizer::arrange(std::vector<int64_t> leaders) {
  std::map<int64_t, std::vector<NamedTensor>> members;
  for (size_t row = 0; row < rows_.size(); ++row)
    if (leaders[row] >= 0) members[leaders[row]].push_back(rows_[row].parameter);
  launches_.clear();
  for (auto& [row, parameters] : members) {
    std::vector<FlatRange> ranges = flat_->ranges(parameters);
    launches_.push_back({rows_[static_cast<size_t>(row)].group, row, std::move(parameters), std::move(ranges)});
  }
  leaders_ = std::move(leaders);
  launches_changed();
}

void Optimizer::check_before(const std::vector<bool>& trained, const std::vector<int64_t>& leaders) const {
  size_t i = 0;
  for (const Group& group : groups_)
    for (const auto* list : {&group.parameters, &group.frozen})
      for (const NamedTensor& parameter : *list) {
        const bool was = i < trained.size() && trained[i++];
        WEFT_CHECK(parameter.tensor.requires_grad() == was, name_, ": parameter '", parameter.name, "' was ",
                   was ? "frozen" : "thawed", " after the step had been captured. Capture it anew");
      }
  for (size_t row = 0; row < leaders.size(); ++row)
    WEFT_CHECK(leaders[row] < 0 || rows_[row].steps == rows_[static_cast<size_t>(leaders[row])].steps, name_,
               ": parameter '", rows_[row].parameter.name, "' has ", rows_[row].steps, " steps, '",
               rows_[static_cast<size_t>(leaders[row])].parameter.name, "' ",
               rows_[static_cast<size_t>(leaders[row])].steps,
               "; when the step was captured they had the same. Capture it anew");
}

std::vector<bool> Optimizer::trained() const {
  std::vector<bool> result;
  for (const Group& group : groups_)
    for (const auto* list : {&group.parameters, &group.frozen})
      for (const NamedTensor& parameter : *list) result.push_back(parameter.tensor.requires_grad());
  return result;
}

void Optimizer::step() {
  const OpScope scope(name_);
  const NoGrad no_grad;
  flat_->check_bound(name_);
  flat_->check_open(name_);
  check_no_unclaimed_leaf(name_);
  take_in_thawed();
  if (std::vector<int64_t> now = leaders(); now != leaders_) arrange(std::move(now));
  for_rows([this](size_t row) { return leaders_[row] >= 0; },
           [this](const Tensor& rows) { rows.select(1, kStep).add_(ones_.slice(0, 0, rows.size(0))); });
  update_all();
  if (capture_number() != 0)
    check_before_replay([this, was = trained(), together = leaders_, numel = flat_->numel()] {
      WEFT_CHECK(flat_->numel() == numel, name_,
                 ": more parameters have joined the flat buffers since the step was captured. Capture it anew");
      check_before(was, together);
    });
  on_each_run([this, moved = leaders_] {
    for (size_t row = 0; row < moved.size(); ++row) rows_[row].steps += moved[row] >= 0;
    flat_->weights_changed(/*copied=*/true);
  });
}

void Optimizer::update_all() {
  for (const Launch& launch : launches_)
    for (const FlatRange& place : launch.ranges) update(range(launch, place));
}

Optimizer::Range Optimizer::range(const Launch& launch, FlatRange place) {
  std::vector<Tensor> states;
  for (const Tensor& state : states_) states.push_back(part(state, place));
  return {part(flat_->master(), place),
          part(flat_->gradient(), place),
          part(flat_->compute_copy(), place),
          scalars_.select(0, launch.row),
          std::move(states),
          groups_[static_cast<size_t>(launch.group)].weight_decay};
}

StateDict Optimizer::state_dict(bool all_counts) const {
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
  for (const Row& row : rows_)
    if (all_counts || row.steps != steps())
      dict.scalars.push_back({row.parameter.name + ".step", static_cast<double>(row.steps)});
  for (int group = 0; group < groups(); ++group) dict.scalars.push_back({str("group", group, ".lr"), lr(group)});
  return dict;
}

void Optimizer::load_state_dict(const StateDict& dict) {
  const NoGrad no_grad;
  take_in_thawed();
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
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(dict.scalars, [&](const NamedScalar& given) { return given.name == name; });
  };
  const auto rate_of = [](int group) { return str("group", group, ".lr"); };
  int saved = 0;
  while (has(rate_of(saved))) ++saved;
  // The saved number of each group. Older states do not count groups without parameters.
  std::vector<int> places;
  const auto is_empty = [](const Group& group) { return group.parameters.empty() && group.frozen.empty(); };
  const bool counts_empty = saved == groups();
  for (const Group& group : groups_)
    places.push_back(counts_empty || !is_empty(group) ? static_cast<int>(places.size()) : -1);
  if (!counts_empty)
    for (int next = 0; int& place : places)
      if (place >= 0) place = next++;
  const bool groups_fit = counts_empty || saved == groups() - std::ranges::count(places, -1);

  constexpr size_t kShown = 5;
  std::string text;
  if (!misshapen.empty()) text += "; wrong shape: " + joined(misshapen, kShown);
  if (!missing.empty()) text += "; missing: " + joined(missing, kShown);
  if (!unexpected.empty()) text += "; unexpected: " + joined(unexpected, kShown);
  if (!has("step")) text += "; missing: the step count";
  if (!groups_fit) text += str("; expected ", groups(), " parameter groups");
  WEFT_CHECK(text.empty(), name_, ": the saved state does not fit", text);
  for (int group = 0; group < saved; ++group) check_rate(name_, dict.scalar(rate_of(group)));
  for (const Row& row : rows_)
    WEFT_CHECK(is_count(steps_of(dict, row.parameter.name)) && is_count(dict.scalar("step")), name_,
               ": the saved state has no count of steps of '", row.parameter.name, "', but ",
               steps_of(dict, row.parameter.name), " and ", dict.scalar("step"));

  for (const auto& [name, tensor] : mine.tensors) tensor.copy_(dict.tensor(name));
  scalars_.select(1, kStep).fill_(dict.scalar("step"));
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double steps = steps_of(dict, rows_[i].parameter.name);
    rows_[i].steps = static_cast<int64_t>(steps);
    if (steps != dict.scalar("step")) scalars_.select(0, static_cast<int64_t>(i)).select(0, kStep).fill_(steps);
  }
  for (int group = 0; group < groups(); ++group)
    if (const int place = places[static_cast<size_t>(group)]; place >= 0) set_lr(dict.scalar(rate_of(place)), group);
}

}  // namespace weft::optim
