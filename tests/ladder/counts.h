// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "emulator/source/count.h"
#include "kernels/ladder/ladder.h"

namespace weft::tests {

/// The counts of each step of a ladder on simt with the sizes of the ladder's table: [n] is step n, [0] is empty.
using StepCounts = std::vector<emulator::source::Counts>;

/// Calls `check` with the counts of a ladder, once for each order of the threads: they must not depend on it. Builds
/// that cannot count (checks, sanitizers) have nothing to hold.
void with_counts(const char* ladder, const std::function<void(const StepCounts&)>& check);

}  // namespace weft::tests
