// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "apps/support/checkpoint.h"
#include "apps/support/exit.h"
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

Tensor converted(const Tensor& tensor, const std::string& dtype) {
  if (!tensor.is_floating()) return tensor;
  for (const DType wanted : {DType::f32, DType::f64, DType::bf16, DType::f16})
    if (name(wanted) == dtype) return tensor.to(wanted);
  return tensor;  // keep
}

}  // namespace

int convert(const Options& options) {
  const std::string& to = options.files[1];
  const Format format = format_of(to);
  const uint64_t largest = parse_bytes("max-shard-size", options.max_shard_size);
  if (largest > 0 && format != Format::safetensors)
    throw UsageError("--max-shard-size: expected a name that ends in .safetensors, got '" + printable(to) + "'");
  const auto file = open_first(options);
  StateDict state;
  uint64_t bytes = 0;
  for (size_t i = 0; i < file->tensors().size(); ++i) {
    state.tensors.push_back({file->tensors()[i].name, converted(file->read(i), options.dtype)});
    bytes += state.tensors.back().tensor.nbytes();
  }

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
  std::cout << "        " << state.tensors.size() << " tensors, " << size_text(bytes) << '\n';
  return support::kExitOk;
}

}  // namespace weft::weft_weights
