// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/state_dict.h"

namespace weft {

/// Writes `model.safetensors`, or, if it would hold more than `largest` bytes of tensors,
/// `model-00001-of-00003.safetensors` and so on and `model.safetensors.index.json` last (Hugging Face's names). A
/// tensor above `largest` gets a file of its own. Returns the files written. Errors: write_safetensors'.
std::vector<std::filesystem::path> write_safetensors_shards(const std::filesystem::path& path, const StateDict& state,
                                                            uint64_t largest,
                                                            const std::map<std::string, std::string>& metadata = {});

}  // namespace weft
