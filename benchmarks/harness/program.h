// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/harness/case.h"

namespace bench {

/// What the cases are built for.
struct Setting {
  std::string suite = "cpu";
  std::string device = "";  ///< empty: the suite's own
  bool tiny = false;        ///< sizes that run in no time anywhere: a test of the cases, not a measurement
};

/// What makes one program's cases from a setting. Errors: a device that is not there.
using MakeCases = std::function<Cases(const Setting&)>;

/// The whole of main: reads the flags, measures the chosen cases and prints for each `case<TAB>value<TAB>unit`.
/// Messages go to stderr. Status 0; 1 when a case failed (the others are measured all the same) or no case was chosen;
/// 2 for a flag that is wrong.
///   --suite cpu|gpu  --device NAME  --list  --filter REGEX  --seconds S  --repetitions N  --seconds-total S  --tiny
int run_program(int argc, char** argv, const std::string& purpose, const std::vector<std::string>& suites,
                const MakeCases& make_cases);

}  // namespace bench
