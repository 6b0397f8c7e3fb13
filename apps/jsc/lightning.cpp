// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/lightning.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "io/atomic_file.h"
#include "kernels/error.h"
#include "train/record/scalar_log.h"
#include "train/record/yaml_text.h"

namespace weft::jsc {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "version_";

int next_version(const fs::path& root) {
  int next = 0;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int version = -1;
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + kPrefix.size(), end, version).ptr == end) next = std::max(next, version + 1);
  }
  return next;
}

}  // namespace

fs::path make_version_folder(const fs::path& root) {
  std::error_code problem;
  fs::create_directories(root, problem);
  WEFT_CHECK(fs::is_directory(root), "log: expected to create the folder ", root.string(), ", got '", problem.message(),
             "'");
  for (;;) {
    const fs::path folder = root / str(kPrefix, next_version(root));
    if (fs::create_directory(folder, problem)) return folder;
    WEFT_CHECK(!problem, "log: expected to create the folder ", folder.string(), ", got '", problem.message(), "'");
  }
}

void write_hparams(const fs::path& folder, const train::HyperParameters& values) {
  std::string text;
  for (const auto& [name, value] : values) text += train::yaml_key(name) + ": " + train::yaml_value(value) + "\n";
  write_atomically(folder / "hparams.yaml", text, "log");
}

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
