// SPDX-License-Identifier: Apache-2.0
#include "io/weights/weights_file.h"

#include <algorithm>
#include <cstring>

#include "core/text.h"
#include "io/checkpoint_reader.h"
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

Tensor WeightsFile::read_block(size_t index, const WeightBlock& block) const {
  const Tensor rows = read(index).slice(0, block.row, block.rows);
  return block.columns < 0 ? rows : rows.slice(1, block.column, block.columns);
}

StateDict WeightsFile::read_all() const {
  StateDict state;
  for (size_t i = 0; i < tensors_.size(); ++i) state.tensors.push_back({tensors_[i].name, read(i)});
  return state;
}

void read_elements(const Shape& sizes, int64_t first, const Tensor& part,
                   const std::function<Tensor(const WeightBlock&)>& read) {
  for (int64_t done = 0; done < part.numel();) {
    const int64_t row = sizes.numel() / sizes[0], column = sizes.rank() > 1 ? row / sizes[1] : 1;
    const int64_t at = first + done, left = part.numel() - done;
    WeightBlock block{.row = at / row, .rows = left / row};
    int64_t count = block.rows * row, before = at % row;  // elements of the block ahead of the wanted ones
    if (before > 0 || block.rows == 0) {                  // the row is cut
      count = std::min(left, row - before);
      block = {block.row, 1, before / column, (before + count - 1) / column + 1 - before / column};
      before -= block.column * column;
    }
    const Tensor values = read(block).contiguous().flatten();
    part.slice(0, done, count).copy_(values.slice(0, before, count));
    done += count;
  }
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
  Tensor read_block(size_t index, const WeightBlock& block) const override { return file_.read_block(index, block); }

 private:
  SafetensorsReader file_;
};

/// The tensors of one part (`model` when `key` is empty) of a checkpoint.
class CheckpointWeights : public WeightsFile {
 public:
  CheckpointWeights(const std::filesystem::path& path, const OpenWeightsOptions& options)
      : reader_(path, CheckpointReader::Seal::later),
        part_(options.key.empty() ? "model" : options.key),
        listed_(find_part()),
        checks_(options.checks) {
    const CheckpointIndex& index = reader_.index();
    format_ = "weft checkpoint";
    for (const auto& [name, value] : index.integers) metadata_[name] = str(value);
    for (const auto& [name, value] : index.numbers) metadata_[name] = str(value);
    for (const auto& [name, value] : index.texts) metadata_[name] = value;
    for (const CheckpointIndex::Entry& entry : listed_.tensors)
      add({entry.name, entry.dtype, entry.is_ohwi ? to_file_order(entry.sizes) : entry.sizes,
           std::string(stored_name(entry.dtype))});
  }
  Tensor read(size_t index) const override {
    const CheckpointIndex::Entry& entry = listed_.tensors.at(index);
    if (checks_) check();
    std::vector<WantedPiece> wanted{{part_, entry.name}};
    reader_.read(wanted);
    return entry.is_ohwi ? to_file_order(wanted[0].values) : wanted[0].values;
  }
  Tensor read_block(size_t index, const WeightBlock& block) const override {
    const CheckpointIndex::Entry& entry = listed_.tensors.at(index);
    Shape sizes = entry.sizes;
    const int64_t row = sizes.numel() / std::max<int64_t>(sizes[0], 1), all = sizes.rank() > 1 ? sizes[1] : 1;
    const bool is_cut = block.columns >= 0 && !entry.is_ohwi;  // an OHWI tensor's second dimension is another
    const int64_t run = is_cut ? row / all * block.columns : row;
    sizes[0] = block.rows;
    if (is_cut) sizes[1] = block.columns;
    std::vector<WantedPiece> wanted{{part_,
                                     entry.name,
                                     0,
                                     Tensor::empty({sizes.numel()}, entry.dtype),
                                     {block.row * row + (is_cut ? row / all * block.column : 0), run, row}}};
    reader_.read(wanted);
    const Tensor values = wanted[0].values.reshape(sizes);
    if (!entry.is_ohwi) return values;
    const Tensor turned = to_file_order(values);
    return block.columns < 0 ? turned : turned.slice(1, block.column, block.columns);
  }
  void check() const override { reader_.check_seal(); }

 private:
  const CheckpointIndex::Part& find_part() const {
    const CheckpointIndex& index = reader_.index();
    std::vector<std::string> names;
    for (const auto& [name, part] : index.parts) {
      if (name == part_) return part;
      names.push_back(name);
    }
    const auto kind = index.texts.find("kind");  // linear_probe's features
    fail("checkpoint: expected a part '", printable(part_), "', got ",
         names.empty() ? "none" : printable(joined(names)),
         kind == index.texts.end() ? "" : " (" + printable(kind->second) + ")",
         names.empty() ? "" : ". weft-weights --key and train_image --weights-key take one");
  }

  CheckpointReader reader_;
  std::string part_;
  const CheckpointIndex::Part& listed_;
  bool checks_;
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
  const auto checkpoint = [&] { return std::make_unique<CheckpointWeights>(path, options); };
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
