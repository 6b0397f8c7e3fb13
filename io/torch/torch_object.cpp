// SPDX-License-Identifier: Apache-2.0
#include "io/torch/torch_object.h"

#include "core/text.h"

namespace weft {
namespace {

const char* kind(const TorchObject& object) {
  constexpr const char* kinds[] = {"None",     "a bool", "a whole number", "a number", "a text",
                                   "a tensor", "a list", "a tuple",        "a dict"};
  return kinds[object.is.index()];
}

std::string text_of(const std::variant<std::string, int64_t>& key) {
  const auto* name = std::get_if<std::string>(&key);
  return name != nullptr ? printable(*name) : str(std::get<int64_t>(key));
}

}  // namespace

TorchObject TorchObject::of(const StateDict& state) {
  Dict dict;
  for (const NamedTensor& entry : state.tensors) dict.emplace_back(entry.name, TorchObject{entry.tensor});
  for (const NamedScalar& entry : state.scalars) dict.emplace_back(entry.name, TorchObject{entry.value});
  return {std::move(dict)};
}

const TorchObject* TorchObject::find(std::string_view key) const {
  const auto* dict = std::get_if<Dict>(&is);
  if (dict == nullptr) return nullptr;
  const TorchObject* found = nullptr;
  for (const auto& [name, value] : *dict)
    if (const auto* text = std::get_if<std::string>(&name); text != nullptr && *text == key) found = &value;
  return found;
}

const TorchObject& TorchObject::at(std::string_view key, std::string_view what) const {
  if (const TorchObject* found = find(key)) return *found;
  const auto* dict = std::get_if<Dict>(&is);
  if (dict == nullptr) fail(what, ": expected a dict with the key '", key, "', got ", kind(*this));
  std::vector<std::string> names;
  for (const auto& item : *dict) names.push_back(text_of(item.key));
  fail(what, ": expected the key '", key, "', got none.",
       names.empty() ? " The dict is empty" : " There are: " + joined(names, 10));
}

int64_t TorchObject::integer(std::string_view what) const {
  if (const auto* value = std::get_if<int64_t>(&is)) return *value;
  fail(what, ": expected a whole number, got ", kind(*this));
}

double TorchObject::number(std::string_view what) const {
  if (const auto* value = std::get_if<double>(&is)) return *value;
  if (const auto* value = std::get_if<int64_t>(&is)) return static_cast<double>(*value);
  fail(what, ": expected a number, got ", kind(*this));
}

StateDict TorchObject::state(std::string_view what) const {
  const auto* dict = std::get_if<Dict>(&is);
  if (dict == nullptr) fail(what, ": expected a dict of tensors, got ", kind(*this));
  StateDict result;
  for (const auto& [key, value] : *dict) {
    const auto* tensor = std::get_if<Tensor>(&value.is);
    if (tensor == nullptr) fail(what, ": expected a tensor under '", text_of(key), "', got ", kind(value));
    result.tensors.push_back({text_of(key), *tensor});
  }
  return result;
}

}  // namespace weft
