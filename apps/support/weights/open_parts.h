// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/support/weights/weights_file.h"

// What open_weights() chooses from, one function for each format.

namespace weft::support {

/// A safetensors file.
std::unique_ptr<WeightsFile> open_safetensors(const std::filesystem::path& path);

/// `model.safetensors.index.json` or `pytorch_model.bin.index.json`: JSON whose `weight_map` says which file beside it
/// holds which tensor. Errors: `weights index: FILE: …`; a name in it that is no plain file name, a tensor that its
/// file lacks.
std::unique_ptr<WeightsFile> open_weights_index(const std::filesystem::path& path);

/// The tensors of one part (`model` when `key` is empty) of a checkpoint that train_image wrote.
std::unique_ptr<WeightsFile> open_checkpoint_part(const std::filesystem::path& path, const std::string& key);

}  // namespace weft::support
