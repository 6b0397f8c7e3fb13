// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "io/memory_budget.h"
#include "io/weights/weights_file.h"

// The formats that open_weights() and a weights index open.

namespace weft {

/// A safetensors file. `memory`: of the load that it is part of.
std::unique_ptr<WeightsFile> open_safetensors(const std::filesystem::path& path, MemoryBudget& memory);
/// open_torch() as part of a load.
std::unique_ptr<WeightsFile> open_torch(const std::filesystem::path& path, const std::string& key,
                                        std::shared_ptr<MemoryBudget> memory);

/// `model.safetensors.index.json` or `pytorch_model.bin.index.json`: JSON whose `weight_map` names the file of each
/// tensor. Errors: `weights index: FILE: …`; a name in it that is no plain file name, a tensor that its
/// file lacks.
std::unique_ptr<WeightsFile> open_weights_index(const std::filesystem::path& path);

}  // namespace weft
