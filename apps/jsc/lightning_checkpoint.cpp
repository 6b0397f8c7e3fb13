// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/lightning_checkpoint.h"

#include <cmath>

namespace weft::jsc {
namespace {

// Readers of Lightning look here for what they must convert.
constexpr const char* kVersion = "1.8.6";

/// Whole numbers as such: these were numbers of things.
TorchObject value_of(const train::HyperParameter& value) {
  const auto* number = std::get_if<double>(&value);
  if (number != nullptr && std::trunc(*number) == *number && std::abs(*number) < 1e15)
    return {static_cast<int64_t>(*number)};
  return std::visit([](const auto& one) { return TorchObject{one}; }, value);
}

TorchObject values(const train::HyperParameters& hyper_parameters) {
  TorchObject::Dict dict;
  for (const auto& [name, value] : hyper_parameters) dict.emplace_back(name, value_of(value));
  return {std::move(dict)};
}

}  // namespace

void write_lightning_checkpoint(const std::filesystem::path& path, const LightningCheckpoint& checkpoint) {
  write_torch(path, {TorchObject::Dict{{"epoch", {checkpoint.epoch}},
                                       {"global_step", {checkpoint.global_step}},
                                       {"pytorch-lightning_version", {std::string(kVersion)}},
                                       {"state_dict", TorchObject::of(checkpoint.model)},
                                       {"loops", {TorchObject::Dict{}}},
                                       {"callbacks", {TorchObject::Dict{}}},
                                       {"optimizer_states", {TorchObject::List{checkpoint.optimizer}}},
                                       {"lr_schedulers", {TorchObject::List{}}},
                                       {"hyper_parameters", values(checkpoint.hyper_parameters)}}});
}

}  // namespace weft::jsc
