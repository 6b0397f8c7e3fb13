// SPDX-License-Identifier: Apache-2.0
#include "optim/layer_decay.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>

#include "core/autograd.h"

namespace weft::optim {
namespace {

/// `m.blocks` and 3 of `m.blocks.3.attn.qkv.weight`: the first part of a path that is a number; -1 if there is none.
struct Block {
  std::string_view list;
  int64_t number = -1;
};

Block block_of(std::string_view path) {
  for (size_t begin = 0; begin < path.size();) {
    const std::string_view part = path.substr(begin, path.find('.', begin) - begin);
    int64_t number = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error == std::errc() && end == part.data() + part.size()) return {path.substr(0, begin), number};
    begin += part.size() + 1;
  }
  return {};
}

/// Names of the whole model's parameters in its order, also where these are those of a pipeline's stage.
std::vector<std::string> names_of_whole(const std::vector<NamedTensor>& parameters) {
  std::vector<std::string> names;
  for (const NamedTensor& parameter : parameters) {
    const auto& meta = parameter.tensor.impl()->autograd;
    const std::shared_ptr<FlatParameters> flat = meta ? meta->flat.lock() : nullptr;
    if (flat && !flat->stages().names.empty()) return flat->stages().names;
    names.push_back(parameter.name);
  }
  return names;
}

std::string_view without_dot(std::string_view list) { return list.substr(0, list.empty() ? 0 : list.size() - 1); }

}  // namespace

std::vector<ParameterGroup> by_layer(const std::vector<NamedTensor>& parameters, const LayerDecayOptions& options) {
  WEFT_CHECK(options.factor > 0 && options.factor <= 1, "layer decay: expected a factor in (0, 1], got ",
             options.factor);
  int64_t blocks = 0;
  std::string_view list;
  const std::vector<std::string> names = names_of_whole(parameters);
  for (const std::string& name : names) {
    const Block block = block_of(name);
    if (block.number < 0) continue;
    if (blocks == 0) list = block.list;
    WEFT_CHECK(block.list == list, "layer decay: expected one list of numbered blocks, got '", without_dot(list),
               "' and '", without_dot(block.list), "'");
    blocks = std::max(blocks, block.number + 1);
  }
  WEFT_CHECK(blocks > 0,
             "layer decay: expected a parameter of a numbered block (blocks.0.…), which tells its depth, got none");

  bool after_blocks = false;
  std::unordered_map<std::string_view, int64_t> depths;
  for (const std::string& name : names) {
    const Block block = block_of(name);
    after_blocks = after_blocks || block.number >= 0;
    depths[name] = block.number >= 0 ? block.number + 1 : after_blocks ? blocks + 1 : 0;
  }
  std::map<std::pair<int64_t, bool>, ParameterGroup> groups;
  for (const NamedTensor& parameter : parameters) {
    const auto found = depths.find(parameter.name);
    WEFT_CHECK(found != depths.end(), "layer decay: expected the names of Pipeline::parameters(), got '",
               parameter.name, "'");
    const int64_t depth = found->second;
    const bool is_vector = parameter.tensor.dim() <= 1 && !options.decay_vectors;
    ParameterGroup& group = groups[{depth, is_vector}];
    group.lr = options.lr * std::pow(options.factor, static_cast<double>(blocks + 1 - depth));
    group.weight_decay = is_vector ? 0 : options.weight_decay;
    group.parameters.push_back(parameter);
  }
  std::vector<ParameterGroup> result;
  for (auto& [place, group] : groups) result.push_back(std::move(group));
  return result;
}

std::vector<NamedTensor> in_order(const std::vector<ParameterGroup>& groups) {
  std::vector<NamedTensor> result;
  for (const ParameterGroup& group : groups)
    for (const NamedTensor& parameter : group.parameters)
      if (parameter.tensor.requires_grad()) result.push_back(parameter);
  return result;
}

}  // namespace weft::optim
