// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/unit_layout.h"

#include <algorithm>
#include <map>

namespace weft::dist {
namespace {

/// A parameter (listed once) with the modules that name it.
struct Owned {
  NamedTensor parameter;
  std::vector<nn::Module*> modules;
  size_t unit = 0;
};

std::string parent_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

/// Modules by path.
using Paths = std::map<std::string, nn::Module*>;

/// The module of a parameter: the longest prefix of its path that is a module.
std::string owner_path(const Paths& modules, std::string path) {
  do path = parent_of(path);
  while (!modules.contains(path));
  return path;
}

size_t unit_of(const Paths& modules, const std::map<nn::Module*, size_t>& units, std::string path) {
  while (true) {
    const auto module = modules.find(path);
    if (module != modules.end())
      if (const auto unit = units.find(module->second); unit != units.end()) return unit->second;
    path = parent_of(path);
  }
}

void check(const NamedTensor& parameter, const NamedTensor& first, const MixedPrecision& precision) {
  const auto& [name, tensor] = parameter;
  WEFT_CHECK(tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64, "fsdp: parameter '", name,
             "': expected f32 or f64, got ", tensor, ". Use MixedPrecision for a lower precision");
  WEFT_CHECK(tensor.dtype() == first.tensor.dtype() && tensor.device() == first.tensor.device(),
             "fsdp: expected one dtype and one device, got '", first.name, "' ", first.tensor, " and '", name, "' ",
             tensor);
  WEFT_CHECK(tensor.is_leaf(), "fsdp: '", name, "' ", tensor, " is the result of an op, not a parameter");
  WEFT_CHECK(tensor.raw_data() != nullptr || tensor.numel() == 0, "fsdp: parameter '", name,
             "' has no memory. Is the model sharded already?");
  WEFT_CHECK(precision.param == DType::f32 || tensor.dtype() == DType::f32, "fsdp: parameters of ", tensor.dtype(),
             " cannot be gathered in ", precision.param);
}

std::vector<Owned> owned_parameters(nn::Module& model, const Paths& modules, const std::map<nn::Module*, size_t>& units,
                                    const MixedPrecision& precision) {
  const std::vector<NamedTensor> all = model.parameter_names();
  WEFT_CHECK(!all.empty(), "fsdp: the model has no parameters");
  std::vector<Owned> result;
  std::map<const TensorImpl*, size_t> seen;
  for (const NamedTensor& parameter : all) {
    check(parameter, all.front(), precision);
    const std::string path = owner_path(modules, parameter.name);
    const size_t unit = unit_of(modules, units, path);
    const auto [found, is_new] = seen.emplace(parameter.tensor.impl(), result.size());
    if (is_new) result.push_back({parameter, {}, unit});
    Owned& owned = result[found->second];
    owned.modules.push_back(modules.at(path));
    if (owned.unit != unit) owned.unit = 0;  // gathered whenever any of its modules runs
  }
  return result;
}

}  // namespace

std::string UnitLayout::Buffer::suffix() const {
  if (!low && trained) return "";
  return low && !trained ? " (low, frozen)" : low ? " (low)" : " (frozen)";
}

UnitLayout lay_out_units(nn::Module& model, const WrapPolicy& policy, const MixedPrecision& precision) {
  UnitLayout layout;
  layout.units.push_back({"root", &model, {}});
  for (const auto& [path, module] : choose_units(model, policy)) layout.units.push_back({path, module, {}});
  std::map<nn::Module*, size_t> units;
  for (size_t u = 0; u < layout.units.size(); ++u) units.emplace(layout.units[u].module, u);
  Paths modules;
  for (const auto& [path, module] : model.modules()) modules.emplace(path, module);

  std::map<nn::Module*, size_t> owners;
  for (const Owned& owned : owned_parameters(model, modules, units, precision)) {
    const auto is_low = [&](nn::Module* module) {
      return std::find(precision.kinds.begin(), precision.kinds.end(), module->kind()) != precision.kinds.end();
    };
    const bool low = precision.param != DType::f32 && std::all_of(owned.modules.begin(), owned.modules.end(), is_low);
    const bool trained = owned.parameter.tensor.requires_grad();
    std::vector<UnitLayout::Buffer>& buffers = layout.units[owned.unit].buffers;
    auto buffer = std::find_if(buffers.begin(), buffers.end(),
                               [&](const auto& b) { return b.low == low && b.trained == trained; });
    if (buffer == buffers.end()) buffer = buffers.insert(buffers.end(), {low, trained, {}});
    buffer->parameters.push_back(owned.parameter);
    for (nn::Module* module : owned.modules) layout.owners.emplace_back(module, owned.unit);
  }
  std::sort(layout.owners.begin(), layout.owners.end());
  layout.owners.erase(std::unique(layout.owners.begin(), layout.owners.end()), layout.owners.end());
  for (UnitLayout::Unit& unit : layout.units)
    for (UnitLayout::Buffer& buffer : unit.buffers)
      std::stable_partition(buffer.parameters.begin(), buffer.parameters.end(),
                            [](const NamedTensor& parameter) { return parameter.tensor.dim() > 1; });
  return layout;
}

std::vector<NamedTensor> own_buffers(nn::Module& module) {
  std::vector<NamedTensor> result;
  const Paths modules = [&] {
    Paths paths;
    for (const auto& [path, child] : module.modules()) paths.emplace(path, child);
    return paths;
  }();
  for (const NamedTensor& buffer : module.buffers())
    if (owner_path(modules, buffer.name).empty()) result.push_back(buffer);
  return result;
}

}  // namespace weft::dist
