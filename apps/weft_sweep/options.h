// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/weft_sweep/sweep_file.h"

namespace weft::weft_sweep {

/// The command line.
struct Options {
  std::vector<std::string> command;  ///< after `--`
  std::vector<Parameter> parameters;
  std::string method = "grid";    ///< grid, random, bayes
  int64_t trials = 0, seed = 0;   ///< points of a search; for a grid from a file the first points, 0: all
  int64_t min_iter = 0, eta = 3;  ///< early stopping; 0: none
  int64_t max_iter = 0;           ///< no run is stopped from this value on; 0: no such limit
  std::string metric, goal = "min", by = "last";
  std::string out = "sweep";
  int jobs = 1;
  std::string gpus;
  bool dry_run = false, rank = false, slurm = false;
  std::string sbatch;                   ///< flags for sbatch, in one string
  int64_t point = -1;                   ///< run only this point
  std::vector<std::string> notes = {};  ///< lines about the file for the user
};

/// Reads `weft-sweep [flags] [--grid NAME=…]… [-- PROGRAM …]`. Empty: help was printed. Errors:
/// UsageError.
std::optional<Options> parse_options(const std::vector<std::string>& arguments);

}  // namespace weft::weft_sweep
