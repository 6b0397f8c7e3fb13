// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "core/autograd.h"
#include "nn/linear.h"
#include "nn/module.h"

namespace weft::nn {
namespace {

/// The tensor as files show it: OHWI weights as OIHW views of the same memory.
Tensor presented(const Tensor& tensor, Layout layout) {
  const Tensor data = tensor.detach();
  return layout == Layout::ohwi ? to_file_order(data) : data;
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
  std::unordered_map<std::string, Tensor> given = tensors_by_name(dict);

  LoadReport report;
  std::vector<std::string> misshapen;
  std::vector<std::pair<NamedTensor, Tensor>> pairs;
  for (const NamedTensor& mine : state.dict.tensors) {
    const auto found = given.find(mine.name);
    if (found == given.end()) {
      if (!state.counters.contains(mine.name) && !is_fp8_state(mine.name)) report.missing.push_back(mine.name);
      continue;
    }
    if (found->second.sizes() == mine.tensor.sizes())
      pairs.emplace_back(mine, found->second);
    else
      misshapen.push_back(str(mine.name, " (expected ", mine.tensor.sizes(), ", got ", found->second.sizes(), ")"));
    given.erase(found);
  }
  for (const std::string& name : names_of(dict))
    if (given.contains(name) && !is_fp8_state(name)) report.unexpected.push_back(name);

  using Names = std::vector<std::string>;
  const std::string text =
      mismatch_text(misshapen, options.strict ? report.missing : Names(), options.strict ? report.unexpected : Names());
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
