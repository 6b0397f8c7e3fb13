// SPDX-License-Identifier: Apache-2.0
#include "io/weights/weights_file.h"

#include <algorithm>
#include <cstring>

#include "core/text.h"
#include "io/checkpoint.h"
#include "io/checkpoint_index.h"
#include "io/file_kind.h"
#include "io/safetensors.h"
#include "io/stored_dtype.h"
#include "io/weights/open_parts.h"

namespace weft {

int64_t WeightsFile::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? -1 : static_cast<int64_t>(found->second);
}

void WeightsFile::add(WeightInfo info) {
  WEFT_CHECK(index_.emplace(info.name, tensors_.size()).second, "weights: expected each name once, got '",
             printable(info.name), "' twice");
  tensors_.push_back(std::move(info));
}

Tensor WeightsFile::read_block(size_t, const WeightBlock&) const {
  fail("weights: expected a format whose tensors can be read in parts, got ", format_);
}

StateDict WeightsFile::read_all() const {
  StateDict state;
  for (size_t i = 0; i < tensors_.size(); ++i) state.tensors.push_back({tensors_[i].name, read(i)});
  return state;
}

namespace {

class SafetensorsWeights : public WeightsFile {
 public:
  SafetensorsWeights(const std::filesystem::path& path, MemoryBudget& memory) : file_(path, memory) {
    format_ = "safetensors";
    metadata_ = file_.metadata();
    for (const SafetensorsEntry& entry : file_.entries())
      add({entry.name, entry.stored->dtype, entry.sizes, std::string(entry.stored->name)});
  }
  Tensor read(size_t index) const override { return file_.read(index); }
  bool has_blocks() const override { return true; }
  Tensor read_block(size_t index, const WeightBlock& block) const override { return file_.read_block(index, block); }

 private:
  SafetensorsReader file_;
};

/// The tensors of one part (`model` when `key` is empty) of a checkpoint.
class CheckpointWeights : public WeightsFile {
 public:
  CheckpointWeights(const Checkpoint& checkpoint, const std::string& key) : state_(part_of(checkpoint, key)) {
    format_ = "weft checkpoint";
    for (const auto& [name, value] : checkpoint.integers) metadata_[name] = str(value);
    for (const auto& [name, value] : checkpoint.numbers) metadata_[name] = str(value);
    for (const auto& [name, value] : checkpoint.texts) metadata_[name] = value;
    for (const NamedTensor& entry : state_.tensors)
      add({entry.name, entry.tensor.dtype(), entry.tensor.sizes(), std::string(stored_name(entry.tensor.dtype()))});
  }
  Tensor read(size_t index) const override { return state_.tensors.at(index).tensor; }

 private:
  static StateDict part_of(const Checkpoint& checkpoint, const std::string& key) {
    const std::string wanted = key.empty() ? "model" : key;
    std::vector<std::string> names;
    for (const auto& [name, state] : checkpoint.parts) {
      if (name == wanted) return state;
      names.push_back(name);
    }
    const auto kind = checkpoint.texts.find("kind");  // linear_probe's features
    fail("checkpoint: expected a part '", printable(wanted), "', got ",
         names.empty() ? "none" : printable(joined(names)),
         kind == checkpoint.texts.end() ? "" : " (" + printable(kind->second) + ")",
         names.empty() ? "" : ". weft-weights --key and train_image --weights-key take one");
  }

  StateDict state_;
};

constexpr const char* kFormats = "safetensors, a safetensors index, a PyTorch file or a Weft checkpoint";

/// A header's length that fits the file, and JSON after it.
bool looks_like_safetensors(const char* start, uint64_t size) {
  uint64_t length = 0;
  std::memcpy(&length, start, 8);
  return size >= 10 && length <= size - 8 && start[8] == '{';
}

}  // namespace

std::unique_ptr<WeightsFile> open_safetensors(const std::filesystem::path& path, MemoryBudget& memory) {
  return std::make_unique<SafetensorsWeights>(path, memory);
}

std::filesystem::path weights_in_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  for (const char* name :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (std::filesystem::exists(path / name, ignored)) return path / name;
  if (std::filesystem::exists(path / CheckpointIndex::kFileName, ignored)) return path;
  const auto [kind, cure] = kind_of_folder(path);
  const std::string where = "weights: " + printable(path.string()) + ": ";
  const char* expected = "expected a file, or a folder with model.safetensors or pytorch_model.bin";
  WEFT_CHECK(!kind.empty(), where, expected, ", got none of them in this folder");
  fail(where, "it is ", kind, ", ", expected, ". ", printable(cure));
}

std::unique_ptr<WeightsFile> open_weights(const std::filesystem::path& given, const OpenWeightsOptions& options) {
  const std::filesystem::path path = weights_in_folder(given);
  const auto checkpoint = [&] { return std::make_unique<CheckpointWeights>(load_checkpoint(path), options.key); };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return checkpoint();
  const std::string table = path.string() + ".index";
  WEFT_CHECK(std::filesystem::exists(path, ignored) || !std::filesystem::exists(table, ignored),
             "weights: ", printable(table), " is of a checkpoint of TensorFlow, expected ", kFormats,
             ". Load it in TensorFlow and save its arrays as .safetensors");
  const FileReader file(path, "weights");
  char start[16] = {};
  file.read(0, start, std::min<uint64_t>(file.size(), sizeof start));
  const auto starts = [&](std::string_view text) { return std::string_view(start, text.size()) == text; };
  const auto without_key = [&] {
    if (!options.key.empty())
      file.bad("expected no key for this format, which holds one dict, got '", options.key, "'");
  };
  const bool is_safetensors = looks_like_safetensors(start, file.size());
  if (is_safetensors || (path.extension() == ".safetensors" && kind_of(file).name.empty())) {
    MemoryBudget memory;
    auto weights = open_safetensors(path, memory);
    if (weights->metadata().contains(CheckpointIndex::kMetadataKey)) return checkpoint();
    return without_key(), std::move(weights);
  }
  if (starts("PK\x03\x04") || starts("PK\x05\x06") || (start[0] == '\x80' && start[1] >= 2 && start[1] <= 5))
    return open_torch(path, options.key);
  if (starts("\x89HDF")) return checkpoint();
  if (start[0] == '{' || path.extension() == ".json") return without_key(), open_weights_index(path);
  refuse(file, kFormats);
}

}  // namespace weft
