// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/weft_sweep/space.h"

namespace weft::weft_sweep {

/// A sweep in the format of wandb:
///   method: random            # or grid
///   metric: {name: val_loss, goal: minimize}
///   run_cap: 20               # points of a random search
///   parameters:
///     lr: {distribution: log_uniform_values, min: 1.0e-5, max: 1.0e-1}
///     batch_size: {values: [16, 32]}
///     epochs: {value: 10}
/// Also distributions uniform, int_uniform, categorical, constant; default: uniform, of whole numbers if both ends are.
/// Keys for wandb itself (program, project, entity, name, command, …) are ignored.
struct SweepFile {
  std::string method = "grid", metric, goal;  ///< goal: min, max or empty
  std::vector<Parameter> parameters;
  int64_t run_cap = 0;
};

/// Errors: UsageErrors `FILE:LINE: …`.
SweepFile read_sweep_file(const std::filesystem::path& path);

}  // namespace weft::weft_sweep
