// SPDX-License-Identifier: Apache-2.0
#include "core/state_dict.h"

#include <algorithm>

#include "core/text.h"

namespace weft {
namespace {

/// Which dimension of [O, spatial …, C] is where in [O, C, spatial …], and the other way.
Shape file_order(int64_t rank) {
  Shape dims{0};
  for (int64_t d = 1; d < rank; ++d) dims.push_back(d == 1 ? rank - 1 : d - 1);
  return dims;
}
Shape memory_order(int64_t rank) {
  Shape dims{0};
  for (int64_t d = 1; d < rank; ++d) dims.push_back(d + 1 == rank ? 1 : d + 1);
  return dims;
}

Shape in_order(const Shape& sizes, const Shape& dims) {
  Shape result;
  for (const int64_t d : dims) result.push_back(sizes[static_cast<int>(d)]);
  return result;
}

}  // namespace

Tensor to_file_order(const Tensor& weight) { return weight.permute(file_order(weight.dim())); }
Tensor from_file_order(const Tensor& weight) { return weight.permute(memory_order(weight.dim())); }
Shape to_file_order(const Shape& sizes) { return in_order(sizes, file_order(sizes.rank())); }
Shape from_file_order(const Shape& sizes) { return in_order(sizes, memory_order(sizes.rank())); }

std::vector<std::string> names_of(const StateDict& dict) {
  constexpr std::string_view kWrapped = "module.";
  const bool wrapped = std::all_of(dict.tensors.begin(), dict.tensors.end(),
                                   [&](const NamedTensor& entry) { return entry.name.starts_with(kWrapped); });
  std::vector<std::string> names;
  for (const auto& [name, tensor] : dict.tensors) names.push_back(wrapped ? name.substr(kWrapped.size()) : name);
  return names;
}

std::unordered_map<std::string, Tensor> tensors_by_name(const StateDict& dict) {
  const std::vector<std::string> names = names_of(dict);
  std::unordered_map<std::string, Tensor> result;
  for (size_t i = 0; i < names.size(); ++i) {
    WEFT_CHECK(dict.tensors[i].tensor.defined(), "load_state_dict: '", names[i], "' is an undefined tensor");
    WEFT_CHECK(result.emplace(names[i], dict.tensors[i].tensor).second, "load_state_dict: '", names[i],
               "' occurs twice");
  }
  return result;
}

std::string mismatch_text(const std::vector<std::string>& misshapen, const std::vector<std::string>& missing,
                          const std::vector<std::string>& unexpected) {
  constexpr size_t kShown = 5;
  std::string text;
  if (!misshapen.empty()) text += "; wrong shape: " + joined(misshapen, kShown);
  if (!missing.empty()) text += "; missing: " + joined(missing, kShown);
  if (!unexpected.empty()) text += "; unexpected: " + joined(unexpected, kShown);
  return text;
}

}  // namespace weft
