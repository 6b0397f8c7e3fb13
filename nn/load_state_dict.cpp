// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "core/autograd.h"
#include "core/joined.h"
#include "nn/module.h"

namespace weft::nn {
namespace {

constexpr size_t kShown = 5;  // names of each kind in an error

/// The tensor as files show it: OHWI weights as OIHW views of the same memory.
Tensor presented(const Tensor& tensor, Layout layout) {
  const Tensor data = tensor.detach();
  return layout == Layout::ohwi ? data.permute({0, 3, 1, 2}) : data;
}

/// Everything that a state dict names, in order.
struct State : Visitor {
  StateDict dict;
  std::unordered_map<std::string, int64_t*> counters;

  void parameter(const std::string& path, Tensor& tensor, Layout layout) override {
    dict.tensors.push_back({path, presented(tensor, layout)});
  }
  void buffer_at(const std::string& path, Tensor& tensor) override { dict.tensors.push_back({path, tensor.detach()}); }
  void counter_at(const std::string& path, int64_t& value) override {
    dict.tensors.push_back({path, Tensor::from(std::vector<int64_t>{value}, Shape{})});
    counters[path] = &value;
  }
};

/// The dict's tensors by name, without the `module.` that a wrapped PyTorch model puts before all of them.
std::unordered_map<std::string, Tensor> by_name(const StateDict& dict) {
  static const std::string kPrefix = "module.";
  const bool wrapped =
      !dict.tensors.empty() && std::all_of(dict.tensors.begin(), dict.tensors.end(),
                                           [](const NamedTensor& entry) { return entry.name.starts_with(kPrefix); });
  std::unordered_map<std::string, Tensor> result;
  for (const auto& [name, tensor] : dict.tensors) {
    const std::string path = wrapped ? name.substr(kPrefix.size()) : name;
    WEFT_CHECK(result.emplace(path, tensor).second, "load_state_dict: '", path, "' occurs twice");
  }
  return result;
}

}  // namespace

StateDict Module::state_dict() {
  const NoGrad no_grad;
  State state;
  fields(state);
  return std::move(state.dict);
}

LoadReport Module::load_state_dict(const StateDict& dict, LoadOptions options) {
  const NoGrad no_grad;
  State state;
  fields(state);
  std::unordered_map<std::string, Tensor> given = by_name(dict);

  LoadReport report;
  std::vector<std::string> misshapen;
  std::vector<std::pair<NamedTensor, Tensor>> pairs;
  for (const NamedTensor& mine : state.dict.tensors) {
    const auto found = given.find(mine.name);
    if (found == given.end()) {
      if (!state.counters.contains(mine.name)) report.missing.push_back(mine.name);
      continue;
    }
    if (found->second.sizes() == mine.tensor.sizes())
      pairs.emplace_back(mine, found->second);
    else
      misshapen.push_back(str(mine.name, " (expected ", mine.tensor.sizes(), ", got ", found->second.sizes(), ")"));
    given.erase(found);
  }
  for (const NamedTensor& theirs : dict.tensors) {  // in the file's order
    const std::string& name = theirs.name;
    if (given.contains(name))
      report.unexpected.push_back(name);
    else if (name.starts_with("module.") && given.contains(name.substr(7)))
      report.unexpected.push_back(name.substr(7));
  }

  std::string text;
  if (!misshapen.empty()) text += "; wrong shape: " + joined(misshapen, kShown);
  if (options.strict && !report.missing.empty()) text += "; missing: " + joined(report.missing, kShown);
  if (options.strict && !report.unexpected.empty()) text += "; unexpected: " + joined(report.unexpected, kShown);
  WEFT_CHECK(text.empty(), "load_state_dict: the weights do not fit ", kind(), text);

  for (const auto& [mine, theirs] : pairs) {
    const auto counter = state.counters.find(mine.name);
    if (counter != state.counters.end())
      *counter->second = static_cast<int64_t>(theirs.item());
    else
      mine.tensor.copy_(theirs);
  }
  return report;
}

}  // namespace weft::nn
