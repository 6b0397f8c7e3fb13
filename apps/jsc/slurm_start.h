// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::jsc {

/// Where rank 0 listens in the course, unless MASTER_PORT says otherwise.
inline constexpr int kPort = 12354;

/// Sets MASTER_PORT to kPort in a process that srun alone has started, and where the user has not set it. Call it
/// before the ranks look for each other.
void choose_port();

/// What the environment says about this process, without asking any other: `alone`, or
/// `rank 1 of 4 (Slurm), which meet at jwb0021i:12354`. Errors: see dist::read_launch_environment.
std::string describe_place();

}  // namespace weft::jsc
