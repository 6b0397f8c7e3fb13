// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "apps/weft_sweep/options.h"
#include "apps/weft_sweep/sweep.h"

namespace weft::weft_sweep {

/// A batch script that runs the sweep as a job array: task i runs point i by `weft-sweep --out … --point i`. It
/// forwards SIGTERM and asks Slurm to requeue a task whose program ended with a checkpoint (exit code 75).
/// Errors: --sbatch holds a word that is no flag; --out or the working folder has control characters in its name.
std::string slurm_script(const Sweep& sweep, const Options& options);

}  // namespace weft::weft_sweep
