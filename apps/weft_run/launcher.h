// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/weft_run/options.h"

namespace weft::weft_run {

/// Runs the ranks of this node until all have ended, and restarts them after failures as often as the options allow.
/// Returns 0, or the exit code of the rank that failed first, on any node (128 + the number of the signal that ended
/// it).
int launch(const Options& options);

}  // namespace weft::weft_run
