// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "apps/support/checkpoint.h"
#include "apps/support/exit.h"
#include "apps/support/progress.h"
#include "apps/support/weights/safetensors_shards.h"
#include "apps/weft_weights/options.h"
#include "apps/weft_weights/sizes.h"
#include "core/printable.h"

namespace weft::weft_weights {
namespace {

using support::UsageError;

enum class Format { safetensors, torch, checkpoint };

Format format_of(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".safetensors") return Format::safetensors;
  if (extension == ".pt" || extension == ".pth" || extension == ".th" || extension == ".bin") return Format::torch;
  if (extension == ".h5") return Format::checkpoint;
  throw UsageError("convert: expected a name that ends in .safetensors, .pt, .pth, .th, .bin or .h5, got '" +
                   printable(path) + "'");
}

/// What a tensor of this dtype becomes.
DType converted(DType dtype, const std::string& wanted) {
  if (!is_floating(dtype)) return dtype;
  for (const DType one : {DType::f32, DType::f64, DType::bf16, DType::f16})
    if (name(one) == wanted) return one;
  return dtype;  // keep
}

uint64_t bytes_of(const support::WeightsFile& file, const std::string& dtype) {
  uint64_t bytes = 0;
  for (const support::WeightInfo& info : file.tensors())
    bytes += static_cast<uint64_t>(info.sizes.numel()) * size_of(converted(info.dtype, dtype));
  return bytes;
}

StateDict read(const support::WeightsFile& file, const std::string& dtype) {
  StateDict state;
  support::Progress progress({.unit = "tensors", .clock = {}});
  progress.begin("read", static_cast<int64_t>(file.tensors().size()));
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const support::WeightInfo& info = file.tensors()[i];
    state.tensors.push_back({info.name, file.read(i).to(converted(info.dtype, dtype))});
    progress.step({.images = 1});
  }
  progress.drop();
  return state;
}

}  // namespace

int convert(const Options& options) {
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
    return support::kExitOk;
  }
  const StateDict state = read(*file, options.dtype);
  std::vector<std::filesystem::path> written{to};
  if (format == Format::safetensors) {
    auto metadata = file->metadata();
    metadata.emplace("format", "pt");  // Hugging Face's libraries look for it
    written = support::write_safetensors_shards(to, state, largest > 0 ? largest : UINT64_MAX, metadata);
  } else if (format == Format::torch) {
    support::write_torch(to, state);
  } else {
    support::Checkpoint checkpoint;
    checkpoint.parts = {{"model", state}};
    checkpoint.texts = file->metadata();
    support::save_checkpoint(to, checkpoint);
  }
  for (const auto& path : written) std::cout << "wrote   " << printable(path.string()) << '\n';
  std::cout << content;
  return support::kExitOk;
}

}  // namespace weft::weft_weights
