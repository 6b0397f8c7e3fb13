// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <regex>

#include "apps/weft_weights/options.h"
#include "apps/weft_weights/sizes.h"
#include "core/text.h"
#include "io/checkpoint.h"
#include "io/checkpoint_reader.h"
#include "io/weights/safetensors_shards.h"
#include "train/exit.h"
#include "train/progress.h"

namespace weft::weft_weights {
namespace {

using train::UsageError;

enum class Format { safetensors, torch };

Format format_of(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".safetensors") return Format::safetensors;
  if (extension == ".pt" || extension == ".pth" || extension == ".th" || extension == ".bin") return Format::torch;
  throw UsageError("convert: expected a name that ends in .safetensors, .pt, .pth, .th or .bin, got '" +
                   printable(path) + "'");
}

/// The dtype that a tensor of this dtype is converted to.
DType converted(DType dtype, const std::string& wanted) {
  if (!is_floating(dtype)) return dtype;
  for (const DType one : {DType::f32, DType::f64, DType::bf16, DType::f16})
    if (name(one) == wanted) return one;
  return dtype;  // keep
}

uint64_t bytes_of(const WeightsFile& file, const std::string& dtype) {
  uint64_t bytes = 0;
  for (const WeightInfo& info : file.tensors())
    bytes += static_cast<uint64_t>(info.sizes.numel()) * size_of(converted(info.dtype, dtype));
  return bytes;
}

StateDict read(const WeightsFile& file, const std::string& dtype) {
  StateDict state;
  train::Progress progress({.unit = "tensors", .clock = {}});
  progress.begin("read", static_cast<int64_t>(file.tensors().size()));
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const WeightInfo& info = file.tensors()[i];
    state.tensors.push_back({info.name, file.read(i).to(converted(info.dtype, dtype))});
    progress.step({.images = 1});
  }
  progress.drop();
  return state;
}

/// The checkpoint as this version writes it.
void convert_checkpoint(const Options& options) {
  const std::string& to = options.files[1];
  const RenameOptions& rename = options.rename;
  if (format_of(to) != Format::safetensors)
    throw UsageError("--checkpoint: expected a name that ends in .safetensors, got '" + printable(to) + "'");
  if (!(options.key + rename.prefix + rename.map + rename.add_prefix + rename.leave_out).empty() ||
      options.dtype != "keep" || options.max_shard_size != "0")
    throw UsageError("--checkpoint: expected --dry-run at most beside it: a checkpoint stays as it is");
  const Checkpoint checkpoint = load_checkpoint(options.files[0]);
  if (!options.dry_run) save_checkpoint(to, checkpoint);
  std::cout << (options.dry_run ? "would write " : "wrote   ") << printable(to) << '\n';
  for (const auto& [part, state] : checkpoint.parts)
    std::cout << "        " << printable(part) << ": " << state.tensors.size() << " tensors\n";
}

/// Nobody loses a checkpoint, or the only copy of weights, by a name that was typed twice.
void check_place(const std::string& from, const std::string& to, bool replaces_checkpoint) {
  std::error_code none;
  if (!std::filesystem::exists(to, none)) return;
  if (std::filesystem::equivalent(from, to, none))
    throw UsageError("convert: expected two files, got " + printable(to) + " twice");
  bool is_checkpoint = !replaces_checkpoint;
  try {
    if (is_checkpoint) const CheckpointReader reader(to);
  } catch (const Error&) {
    is_checkpoint = false;
  }
  if (is_checkpoint)
    throw UsageError("convert: " + printable(to) + " is a checkpoint, with more than weights. Name another file");
}

/// Names each file of an earlier conversion to the same place that is none of this one's: a folder's reader may take
/// it.
void warn_of_leftovers(const std::filesystem::path& to, const std::vector<std::filesystem::path>& written) {
  const std::string stem = to.stem().string();
  const std::regex shard("-[0-9]{5}-of-[0-9]{5}[.]safetensors");
  const std::filesystem::path folder = to.has_parent_path() ? to.parent_path() : ".";
  std::vector<std::string> names;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::string end = name.starts_with(stem) ? name.substr(stem.size()) : "";
    const auto is_this = [&](const std::filesystem::path& one) { return one.filename() == name; };
    if ((end == ".safetensors" || end == ".safetensors.index.json" || std::regex_match(end, shard)) &&
        std::none_of(written.begin(), written.end(), is_this))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  if (!names.empty())
    std::cerr << "warning: beside " << printable(to.string())
              << " lies what an earlier conversion wrote: " << printable(joined(names, 5)) << ". Remove it\n";
}

}  // namespace

int convert(const Options& options) {
  check_place(options.files[0], options.files[1], options.checkpoint);
  if (options.checkpoint) return convert_checkpoint(options), train::kExitOk;
  const std::string& to = options.files[1];
  const Format format = format_of(to);
  const uint64_t largest = parse_bytes("max-shard-size", options.max_shard_size);
  if (largest > 0 && format != Format::safetensors)
    throw UsageError("--max-shard-size: expected a name that ends in .safetensors, got '" + printable(to) + "'");
  const auto file = open_first(options);
  const std::string content =
      str("        ", file->tensors().size(), " tensors, ", size_text(bytes_of(*file, options.dtype)), '\n');
  if (options.dry_run) {
    std::cout << "would write " << printable(to) << '\n' << content;
    return train::kExitOk;
  }
  const StateDict state = read(*file, options.dtype);
  std::vector<std::filesystem::path> written{to};
  if (format == Format::safetensors) {
    auto metadata = file->metadata();
    metadata.emplace("format", "pt");  // Hugging Face's libraries need it
    written = write_safetensors_shards(to, state, largest > 0 ? largest : UINT64_MAX, metadata);
    warn_of_leftovers(to, written);
  } else {
    write_torch(to, state);
  }
  for (const auto& path : written) std::cout << "wrote   " << printable(path.string()) << '\n';
  std::cout << content;
  return train::kExitOk;
}

}  // namespace weft::weft_weights
