// SPDX-License-Identifier: Apache-2.0
#include "train/torch_optimizer.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::train {
namespace {

using Dict = TorchObject::Dict;
using List = TorchObject::List;

/// The parameters that a file holds in another order of dimensions.
class Convolutions : public nn::Visitor {
 public:
  explicit Convolutions(nn::Module& model) { model.fields(*this); }

  Tensor to_file(const std::string& name, const Tensor& ohwi) const {
    return names_.contains(name) ? to_file_order(ohwi) : ohwi;
  }
  Tensor from_file(const std::string& name, const Tensor& oihw) const {
    return names_.contains(name) && oihw.dim() >= 3 ? from_file_order(oihw) : oihw;
  }

 protected:
  void parameter(const std::string& path, Tensor&, nn::Layout layout) override {
    if (layout == nn::Layout::ohwi) names_.insert(path);
  }

 private:
  std::set<std::string> names_;
};

}  // namespace

Dict torch_options(const optim::AdamOptions& options) {
  return {{"betas", {TorchObject::Tuple{{{options.beta1}, {options.beta2}}}}},
          {"eps", {options.eps}},
          {"weight_decay", {options.weight_decay}},
          {"amsgrad", {options.amsgrad}},
          {"maximize", {options.maximize}},
          {"foreach", {}},
          {"capturable", {false}},
          {"differentiable", {false}},
          {"fused", {}}};
}

Dict torch_options(const optim::SgdOptions& options) {
  return {
      {"momentum", {options.momentum}}, {"dampening", {options.dampening}}, {"weight_decay", {options.weight_decay}},
      {"nesterov", {options.nesterov}}, {"maximize", {options.maximize}},   {"foreach", {}},
      {"differentiable", {false}}};
}

TorchObject TorchOptimizer::state() const {
  const Convolutions convolutions(model);
  const StateDict mine = optimizer.state_dict();
  std::map<std::string, std::vector<NamedTensor>> moments;  // moments of each parameter: exp_avg, …
  for (const NamedTensor& entry : mine.tensors) {
    const size_t dot = entry.name.rfind('.');
    const std::string name = entry.name.substr(0, dot);
    moments[name].push_back({entry.name.substr(dot + 1), convolutions.to_file(name, entry.tensor)});
  }
  const bool counts = TorchObject{options}.find("betas") != nullptr;  // SGD keeps no count

  std::set<std::string> known;
  for (int g = 0; g < optimizer.groups(); ++g)
    for (const NamedTensor& parameter : optimizer.parameters(g)) known.insert(parameter.name);

  Dict state;
  List param_groups;
  int64_t number = 0;
  int group = 0;
  for (const optim::ParameterGroup& given : groups) {
    List numbers;
    for (const NamedTensor& parameter : given.parameters) {
      Dict entries;
      // Each parameter's own: PyTorch counts it up in place.
      if (counts) entries.emplace_back("step", TorchObject{Tensor::full({}, optim::steps_of(mine, parameter.name))});
      for (const NamedTensor& moment : moments[parameter.name])
        entries.emplace_back(moment.name, TorchObject{moment.tensor});
      if (known.contains(parameter.name) && optim::steps_of(mine, parameter.name) > 0)
        state.emplace_back(number, TorchObject{std::move(entries)});
      numbers.push_back({number++});
    }
    Dict entry{{"lr", {optimizer.lr(group)}}};
    for (const auto& option : options) {
      entry.push_back(option);
      if (given.weight_decay && std::get<std::string>(option.key) == "weight_decay")
        entry.back().value = {*given.weight_decay};
    }
    entry.emplace_back("initial_lr", TorchObject{optimizer.base_lr(group)});
    entry.emplace_back("params", TorchObject{std::move(numbers)});
    param_groups.push_back({std::move(entry)});
    ++group;
  }
  return {Dict{{"state", {std::move(state)}}, {"param_groups", {std::move(param_groups)}}}};
}

void TorchOptimizer::load(const TorchObject& saved, int64_t steps, const std::string& what) const {
  const auto* param_groups = std::get_if<List>(&saved.at("param_groups", what).is);
  const auto* state = std::get_if<Dict>(&saved.at("state", what).is);
  WEFT_CHECK(param_groups != nullptr && state != nullptr, what,
             ": expected a list 'param_groups' and a dict 'state', as torch.optim has them");
  WEFT_CHECK(param_groups->size() == groups.size(), what, ": expected ", groups.size(), " parameter groups, got ",
             param_groups->size());
  std::map<int64_t, const TorchObject*> entries;
  for (const auto& [key, value] : *state)
    if (const auto* number = std::get_if<int64_t>(&key)) entries[*number] = &value;

  const Convolutions convolutions(model);
  StateDict mine = optimizer.state_dict();
  for (NamedTensor& entry : mine.tensors) entry.tensor = zeros_like(entry.tensor);  // not the optimizer's own memory
  int64_t counted = -1;
  std::vector<NamedScalar> own_counts;
  for (size_t g = 0; g < groups.size(); ++g) {
    const TorchObject& theirs = (*param_groups)[g];
    const auto* numbers = std::get_if<List>(&theirs.at("params", what).is);
    WEFT_CHECK(numbers != nullptr && numbers->size() == groups[g].parameters.size(), what, ": parameter group ", g,
               ": expected ", groups[g].parameters.size(), " parameters, got ", numbers ? numbers->size() : 0);
    for (size_t i = 0; i < numbers->size(); ++i) {
      const std::string& name = groups[g].parameters[i].name;
      const auto found = entries.find((*numbers)[i].integer(what));
      if (found == entries.end()) {
        own_counts.push_back({name + ".step", 0});  // no gradient has reached it
        continue;
      }
      const TorchObject& entry = *found->second;
      if (const TorchObject* step = entry.find("step")) {
        const auto* tensor = std::get_if<Tensor>(&step->is);
        const double count = tensor != nullptr ? tensor->item() : step->number(what);
        WEFT_CHECK(count >= 0 && count < 1e15, what, ": expected a step count of at least 0, got ", count);
        // A parameter that was frozen, or that no gradient reached, has fewer.
        counted = std::max(counted, static_cast<int64_t>(count));
        own_counts.push_back({name + ".step", count});
      }
      for (NamedTensor& moment : mine.tensors) {
        if (!moment.name.starts_with(name + ".")) continue;
        const TorchObject* value = entry.find(moment.name.substr(name.size() + 1));
        if (value == nullptr) continue;
        const auto* tensor = std::get_if<Tensor>(&value->is);
        if (tensor == nullptr) continue;  // None: not yet needed
        const Tensor ours = convolutions.from_file(name, *tensor);
        WEFT_CHECK(ours.sizes() == moment.tensor.sizes(), what, ": ", moment.name, ": expected ",
                   convolutions.to_file(name, moment.tensor).sizes(), ", got ", tensor->sizes());
        moment.tensor = ours;
      }
    }
    for (NamedScalar& number : mine.scalars)
      if (number.name == str("group", g, ".lr")) number.value = theirs.at("lr", what).number(what);
  }
  for (NamedScalar& number : mine.scalars)
    if (number.name == "step") number.value = static_cast<double>(counted >= 0 ? counted : steps);
  std::erase_if(mine.scalars, [](const NamedScalar& number) { return number.name.ends_with(".step"); });
  if (counted >= 0 || !state->empty()) mine.scalars.insert(mine.scalars.end(), own_counts.begin(), own_counts.end());
  optimizer.load_state_dict(mine);
}

}  // namespace weft::train
