// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gmock/gmock.h>

#include <sstream>
#include <string>
#include <vector>

#include "dist/rendezvous/launch_environment.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {

#if WEFT_HAVE_ZIP
#define WEFT_NEEDS_ZIP() static_cast<void>(0)
#else
#define WEFT_NEEDS_ZIP() GTEST_SKIP() << "needs libzip"
#endif

/// Runs a command line in the folder, with the programs in PATH; stdout alone.
inline Outcome run_in(const TemporaryFolder& folder, const std::string& command) {
  return shell("{ { export PATH=" BIN ":$PATH OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive; cd " + (folder / "") + " && " +
               command + "; } 2>" + (folder / "stderr.txt") + "; }");
}

/// The last run's stderr.
inline std::string said(const TemporaryFolder& folder) { return read_text(folder / "stderr.txt"); }

/// Lines of a text that begin with `start`.
inline std::string lines_with(const std::string& text, const std::string& start) {
  std::string found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(start)) found += line + '\n';
  return found;
}

}  // namespace weft::tests
