// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "benchmarks/harness/case.h"

namespace bench {

/// The settings that the cases are built for.
struct Setting {
  std::string suite = "cpu";
  std::string device = "";  ///< empty: the suite's own
  bool tiny = false;        ///< sizes that run quickly anywhere: a test of the cases, not a measurement
  std::string json = "";    ///< a file for a suite that prints a table of its own
};

/// Makes a program's cases from a setting. Errors: a device that is missing.
using MakeCases = std::function<Cases(const Setting&)>;

/// A suite that measures nothing and prints a table of its own: takes the setting, the names that are wanted, and
/// whether only those are to be listed; returns the status.
using PrintTable = std::function<int(const Setting&, const std::regex& wanted, bool list)>;

/// The whole of main: reads the flags, measures the chosen cases and prints for each `case<TAB>value<TAB>unit`.
/// Messages go to stderr. Status 0; 1 when a case failed (the others are still measured) or no case was chosen;
/// 2 for a flag that is wrong.
///   --suite cpu|gpu  --device NAME  --list  --filter REGEX  --seconds S  --repetitions N  --seconds-total S  --tiny
/// `tables`: the suites among them that print tables; their flag is --json FILE.
int run_program(int argc, char** argv, const std::string& purpose, const std::vector<std::string>& suites,
                const MakeCases& make_cases, const std::map<std::string, PrintTable>& tables = {});

}  // namespace bench
