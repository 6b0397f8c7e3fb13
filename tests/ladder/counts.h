// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "benchmarks/ladder/counts.h"
#include "kernels/ladder/ladder.h"

namespace weft::tests {

/// The counts of a ladder's steps with the sizes of its table: [n] is step n; [0] and steps that this GPU does not run
/// are empty.
using StepCounts = std::vector<weft_emulator_counts>;

/// Calls `check` with the counts of a ladder in fixed and random orders of blocks and warps: they must not depend on
/// it. Skips the test on a real GPU, which does not count.
void with_counts(const char* ladder, const std::function<void(const StepCounts&)>& check);

}  // namespace weft::tests
