// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/course.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "dist/rendezvous/launch_environment.h"
#include "kernels/error.h"

namespace weft::jsc {

std::string elapsed_line(double seconds) {
  const long long whole = std::llround(seconds);
  char line[80];
  std::snprintf(line, sizeof line, "elapsed: %02lld hours %02lld min %02lld sec", whole / 3600, whole / 60 % 60,
                whole % 60);
  return line;
}

void choose_port() {
  const dist::LaunchEnvironment place = dist::read_launch_environment(dist::environment_variables());
  if (place.launcher == "Slurm" && place.size > 1) ::setenv("MASTER_PORT", std::to_string(kPort).c_str(), 0);
}

std::string describe_place() {
  const dist::LaunchEnvironment place = dist::read_launch_environment(dist::environment_variables());
  if (place.size == 1) return "alone";
  const std::string host = place.master.host.empty() ? "a host that is not said" : place.master.host;
  return str("rank ", place.rank, " of ", place.size, " (", place.launcher, "), which meet at ", host, ":",
             place.master.port);
}

}  // namespace weft::jsc
