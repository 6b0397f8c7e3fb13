// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "io/weights/weights_file.h"

// The formats that open_weights() and a weights index open.

namespace weft {

/// A safetensors file.
std::unique_ptr<WeightsFile> open_safetensors(const std::filesystem::path& path);

/// `model.safetensors.index.json` or `pytorch_model.bin.index.json`: JSON whose `weight_map` names the file of each
/// tensor. Errors: `weights index: FILE: …`; a name in it that is no plain file name, a tensor that its
/// file lacks.
std::unique_ptr<WeightsFile> open_weights_index(const std::filesystem::path& path);

}  // namespace weft
