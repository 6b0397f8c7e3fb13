// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "train/record/stopwatch.h"

namespace weft::jsc {

using train::Stopwatch;

/// `elapsed: 00 hours 06 min 04 sec`, the line by which the course compares runs.
std::string elapsed_line(double seconds);

/// Where rank 0 listens in the course, unless MASTER_PORT says otherwise.
inline constexpr int kPort = 12354;

/// Sets MASTER_PORT to kPort in a process that srun alone has started, and where the user has not set it. Call it
/// before the ranks look for each other.
void choose_port();

/// This process's place by its environment alone: `alone`, or
/// `rank 1 of 4 (Slurm), which meet at jwb0021i:12354`. Errors: see dist::read_launch_environment.
std::string describe_place();

/// The command line without the program; `--batch-size 4` is the course's `--batch_size 4`.
inline std::vector<std::string> with_underscores(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  for (std::string& argument : arguments)
    if (argument.starts_with("--"))
      std::replace(argument.begin() + 2,
                   argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())), '-',
                   '_');
  return arguments;
}

}  // namespace weft::jsc
