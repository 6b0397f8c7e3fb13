// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "kernels/ladder/ladder.h"
#include "kernels/simt/count.h"

namespace weft::tests {

/// What each step of a ladder does on simt with the sizes that the ladder's table shows: [n] is step n, [0] is empty.
using StepCounts = std::vector<emulator::Counts>;

/// Calls `check` with the counts of a ladder, once for each order of the threads: they must not depend on it. Builds
/// that cannot count (checks, sanitizers) have nothing to hold.
void with_counts(const char* ladder, const std::function<void(const StepCounts&)>& check);

}  // namespace weft::tests
