// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "benchmarks/harness/program.h"

namespace weft::benchmarks {

/// The suite roofline: the bytes and operations of each kernel call of the steps, and its least time on each
/// chip. Nothing runs. Lines of tab-separated columns on stdout, the first one their names: a line per kernel and shape
/// (times of a call), per kernel (`all`: times of all its calls) and per step; --json FILE writes the same.
/// `wanted` is searched in `step/kernel`. Status 1: nothing chosen, or the file cannot be written.
int print_roofline(const bench::Setting& setting, const std::regex& wanted, bool list);

}  // namespace weft::benchmarks
