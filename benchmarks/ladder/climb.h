// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ostream>

#include "benchmarks/harness/measure.h"
#include "kernels/ladder/ladder.h"

namespace weft::benchmarks {

struct Climb {
  Device device{DeviceKind::cuda, 0};
  std::vector<int64_t> sizes;    ///< empty: the ladder's own for this device
  bench::Timing timing{0.5, 7};  ///< on a real GPU
};

/// All ladders: name, formula, names of the sizes.
void print_list(std::ostream& out);

/// Prints one line per step. On a real GPU: time, rate, share of the last step and of NVIDIA's library where it has
/// such a call and is built. On an emulated GPU, whose times mean nothing: the steps' requests to memory (counts.h).
/// Errors: a missing device, a number of sizes other than the ladder's letters, sizes that a step does not take, a
/// wrong result of a step.
void print_table(std::ostream& out, const kernels::ladder::Ladder& ladder, const Climb& climb);

}  // namespace weft::benchmarks
