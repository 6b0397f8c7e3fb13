// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/weft_sweep/space.h"

namespace weft::weft_sweep {

/// A sweep as wandb's users write it:
///   method: random            # or grid
///   metric: {name: val_loss, goal: minimize}
///   run_cap: 20               # points of a random search
///   parameters:
///     lr: {distribution: log_uniform_values, min: 1.0e-5, max: 1.0e-1}
///     batch_size: {values: [16, 32]}
///     epochs: {value: 10}
/// Also distributions uniform, int_uniform, categorical, constant; none named: uniform, of whole numbers when both ends
/// are. Keys that say what wandb does with a sweep (program, project, entity, name, command, …) mean nothing here.
struct SweepFile {
  std::string method = "grid", metric, goal;  ///< goal: min, max or empty
  std::vector<Parameter> parameters;
  int64_t run_cap = 0;
};

/// Errors: UsageErrors `FILE:LINE: …`.
SweepFile read_sweep_file(const std::filesystem::path& path);

}  // namespace weft::weft_sweep
