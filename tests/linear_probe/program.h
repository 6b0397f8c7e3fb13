// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {

inline Outcome probe(const std::string& arguments, const TemporaryFolder& folder, const std::string& out = "run") {
  return shell("OMP_WAIT_POLICY=passive " LINEAR_PROBE " " + arguments + " --out " + (folder / out));
}

inline Outcome probe_on(int ranks, const std::string& arguments, const TemporaryFolder& folder,
                        const std::string& out) {
  return shell("OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 " WEFT_RUN " --nproc_per_node " + std::to_string(ranks) +
               " " LINEAR_PROBE " " + arguments + " --out " + (folder / out));
}

inline Outcome probe_on_two(const std::string& arguments, const TemporaryFolder& folder,
                            const std::string& out = "run") {
  return probe_on(2, arguments, folder, out);
}

}  // namespace weft::tests
