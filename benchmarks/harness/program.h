// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <string_view>
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

/// Abilities beyond measuring; a program without one lacks its flag.
struct Extras {
  /// Takes this variant from now on; the default for an empty name. Errors: an unknown name.
  std::function<void(std::string_view)> choose = {};
  /// Runs the steps and returns a table of their kernels.
  std::function<std::string(const std::function<void()>& steps)> table_of = {};
};

/// The whole of main: reads the flags, measures the chosen cases and prints for each `case<TAB>value<TAB>unit`.
/// Messages go to stderr. Status 0; 1 when a case failed (the others are still measured) or no case was chosen;
/// 2 for a flag that is wrong.
///   --suite cpu|gpu  --device NAME  --list  --filter REGEX  --seconds S  --repetitions N  --seconds-total S  --tiny
/// `extras`: --variants A,B measures each case alternately by default and as each variant, in one process at the same
/// clocks. The medians are printed as CASE and CASE@VARIANT. --kernels FOLDER writes CASE.txt for each case: the
/// kernels of ten steps. `tables`: the suites among them that print tables; their flag is --json FILE.
int run_program(int argc, char** argv, const std::string& purpose, const std::vector<std::string>& suites,
                const MakeCases& make_cases, const std::map<std::string, PrintTable>& tables = {},
                const Extras& extras = {});

}  // namespace bench
