// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace bench {

struct Outcome {
  double seconds = 0;  ///< from the start of the process to its end
  std::string output;  ///< its standard output
};

/// Runs this program once more with these arguments. Errors: it cannot be started, or ends with another status than 0.
Outcome run_again(const std::vector<std::string>& arguments);

/// The most memory that this process has had resident so far, in MiB: VmHWM of /proc/self/status. (getrusage would
/// count what the process was before exec.)
double peak_memory_mib();

}  // namespace bench
