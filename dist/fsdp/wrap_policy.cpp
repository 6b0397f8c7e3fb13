// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/wrap_policy.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "core/text.h"

namespace weft::dist {
namespace {

using Modules = std::vector<std::pair<std::string, nn::Module*>>;

/// Whether `path` is the module `parent` or below it.
bool lies_in(const std::string& path, const std::string& parent) {
  return parent.empty() || path == parent || path.starts_with(parent + '.');
}

/// Each module once, under its first path.
Modules distinct(const Modules& modules) {
  std::set<const nn::Module*> seen;
  Modules result;
  for (const auto& entry : modules)
    if (seen.insert(entry.second).second) result.push_back(entry);
  return result;
}

std::set<std::string> kinds_of(const Modules& modules) {
  std::set<std::string> kinds;
  for (const auto& [path, module] : modules)
    if (!path.empty()) kinds.insert(module->kind());
  return kinds;
}

/// Makes the module a unit of the parameters below it that no unit has, if they are enough.
bool large_enough(const std::string& path, const std::vector<NamedTensor>& parameters, int64_t enough,
                  std::set<const TensorImpl*>& taken) {
  std::set<const TensorImpl*> own;
  int64_t count = 0;
  for (const NamedTensor& parameter : parameters)
    if (lies_in(parameter.name, path) && !taken.contains(parameter.tensor.impl()) &&
        own.insert(parameter.tensor.impl()).second)
      count += parameter.tensor.numel();
  if (count < enough) return false;
  taken.merge(own);
  return true;
}

/// Transformer blocks: nn's, and those that dist/tensor/ divides among ranks.
constexpr std::array kBlocks = {"BertLayer",     "DecoderBlock",     "GptBlock",
                                "ParallelBlock", "ParallelGptBlock", "TransformerBlock"};
constexpr int64_t kWithoutBlocks = 1'000'000;  // parameters of a unit

void check_size(int64_t min_num_params) {
  WEFT_CHECK(min_num_params >= 0, "wrap policy: expected a size of at least 0, got ", min_num_params);
}

}  // namespace

WrapPolicy wrap_policy(nn::Module& model, int64_t min_num_params) {
  check_size(min_num_params);
  if (min_num_params > 0) return {.min_num_params = min_num_params};
  WrapPolicy blocks;
  const std::set<std::string> known = kinds_of(model.modules());
  std::ranges::copy_if(kBlocks, std::back_inserter(blocks.kinds),
                       [&](const char* kind) { return known.contains(kind); });
  return blocks.kinds.empty() ? WrapPolicy{.min_num_params = kWithoutBlocks} : blocks;
}

std::vector<std::pair<std::string, nn::Module*>> choose_units(nn::Module& model, const WrapPolicy& policy) {
  check_size(policy.min_num_params);
  const Modules modules = distinct(model.modules());
  const std::set<std::string> known = kinds_of(modules);
  for (const std::string& kind : policy.kinds)
    WEFT_CHECK(known.contains(kind), "wrap policy: the model has no module of kind '", kind, "'.",
               suggestion(kind, {known.begin(), known.end()}));

  const std::vector<NamedTensor> parameters = model.parameter_names();
  std::set<const TensorImpl*> taken;
  Modules units;
  for (auto entry = modules.rbegin(); entry != modules.rend(); ++entry) {  // children before their parents
    const auto& [path, module] = *entry;
    if (path.empty()) continue;
    const bool named = std::find(policy.kinds.begin(), policy.kinds.end(), module->kind()) != policy.kinds.end();
    const int64_t enough = named ? 1 : policy.min_num_params;
    if (enough == 0 || !large_enough(path, parameters, enough, taken)) continue;
    units.push_back(*entry);
  }
  std::reverse(units.begin(), units.end());
  return units;
}

}  // namespace weft::dist
