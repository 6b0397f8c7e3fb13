// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/safetensors.h"
#include "io/weights/open_parts.h"
#include "io/weights/safetensors_shards.h"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLongest = 64 << 20;  // limit of an index
constexpr size_t kMostShards = 4096;     // all are open at once

class ShardedWeights : public WeightsFile {
 public:
  explicit ShardedWeights(const std::filesystem::path& path) {
    const FileReader file(path, "weights index");
    const auto memory = std::make_shared<MemoryBudget>();  // common to all shards
    memory->opened(file.size());
    const Json map = weight_map(file);
    std::map<std::string, size_t> numbers;
    for (const auto& [name, value] : map.items()) {
      const std::string shard = shard_name(file, name, value);
      const auto [known, is_new] = numbers.emplace(shard, shards_.size());
      if (is_new) {
        if (shards_.size() == kMostShards) file.bad("expected at most ", kMostShards, " files, got more");
        shards_.push_back(open_shard(path.parent_path() / shard, memory));
        if (shards_.back()->format() == "sharded") file.bad("expected '", shard, "' to hold tensors, got an index");
      }
      const WeightsFile& holder = *shards_[known->second];
      const int64_t place = holder.find(name);
      if (place < 0) file.bad("tensor '", name, "': expected it in ", shard, ", got none there");
      add(holder.tensors()[static_cast<size_t>(place)]);
      places_.emplace_back(known->second, static_cast<size_t>(place));
    }
    for (const auto& [shard, number] : numbers)
      for (const WeightInfo& info : shards_[number]->tensors())
        if (find(info.name) < 0)
          file.bad("tensor '", info.name, "' of ", shard, ": expected it in the index, got none");
    format_ = "sharded";
    for (const auto& shard : shards_)
      for (const auto& [key, value] : shard->metadata()) metadata_.emplace(key, value);
  }

  Tensor read(size_t index) const override {
    const auto [shard, place] = places_.at(index);
    return shards_[shard]->read(place);
  }
  Tensor read_block(size_t index, const WeightBlock& block) const override {
    const auto [shard, place] = places_.at(index);
    return shards_[shard]->read_block(place, block);
  }
  void check() const override {
    for (const auto& shard : shards_) shard->check();
  }

 private:
  static Json weight_map(const FileReader& file) {
    if (file.size() > kLongest) file.bad("expected at most ", kLongest, " bytes, got ", file.size());
    std::string text(file.size(), '\0');
    file.read(0, text.data(), text.size());
    // Values below the third level are ignored: deep nesting would overflow the stack.
    const auto keep = [](int depth, Json::parse_event_t, Json&) { return depth <= 3; };
    const Json json = Json::parse(text, keep, false);
    if (!json.is_object()) file.bad("expected JSON, got damaged text");
    const auto found = json.find("weight_map");
    if (found == json.end() || !found->is_object())
      file.bad("expected a weight_map of names and files, got ", found == json.end() ? "none" : "another value");
    return *found;
  }

  /// A file of the index's own folder; an index must not name files elsewhere.
  static std::string shard_name(const FileReader& file, const std::string& name, const Json& value) {
    if (!value.is_string()) file.bad("tensor '", name, "': expected a file name, got another value");
    auto shard = value.get<std::string>();
    if (shard.empty() || shard[0] == '.' || shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos)
      file.bad("tensor '", name, "': expected the name of a file beside the index, got '", shard, "'");
    return shard;
  }

  static std::unique_ptr<WeightsFile> open_shard(const std::filesystem::path& path,
                                                 const std::shared_ptr<MemoryBudget>& memory) {
    return path.extension() == ".safetensors" ? open_safetensors(path, *memory) : open_torch(path, "", memory);
  }

  std::vector<std::unique_ptr<WeightsFile>> shards_;
  std::vector<std::pair<size_t, size_t>> places_;  // shard, tensor in it
};

}  // namespace

std::unique_ptr<WeightsFile> open_weights_index(const std::filesystem::path& path) {
  return std::make_unique<ShardedWeights>(path);
}

std::vector<std::filesystem::path> write_safetensors_shards(const std::filesystem::path& path, const StateDict& state,
                                                            uint64_t largest,
                                                            const std::map<std::string, std::string>& metadata) {
  std::vector<StateDict> shards(1);
  uint64_t filled = 0, total = 0;
  for (const NamedTensor& entry : state.tensors) {
    const uint64_t bytes = entry.tensor.nbytes();
    if (!shards.back().tensors.empty() && filled + bytes > largest) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().tensors.push_back(entry);
    filled += bytes;
    total += bytes;
  }
  shards[0].scalars = state.scalars;  // the writer below refuses them
  if (shards.size() == 1) {
    write_safetensors(path, state, metadata);
    return {path};
  }
  WEFT_CHECK(shards.size() <= kMostShards, "safetensors: expected at most ", kMostShards, " files, got ", shards.size(),
             ". Choose a larger size for each");
  std::vector<std::filesystem::path> written;
  Json map = Json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "-%05zu-of-%05zu", i + 1, shards.size());
    const std::string name = path.stem().string() + number + path.extension().string();
    written.push_back(path.parent_path() / name);
    for (const NamedTensor& entry : shards[i].tensors) {
      WEFT_CHECK(!map.contains(entry.name), "safetensors: expected each name once, got '", entry.name, "' twice");
      map[entry.name] = name;
    }
    write_safetensors(written.back(), shards[i], metadata);
  }
  written.push_back(path.string() + ".index.json");
  const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  write_atomically(written.back(), index.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", "safetensors");
  return written;
}

}  // namespace weft
