// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

#include "tests/dist/child.h"
#include "tests/train/temporary_folder.h"

#if WEFT_HAVE_CRYPTO
#define WEFT_NEEDS_CRYPTO() static_cast<void>(0)
#else
#define WEFT_NEEDS_CRYPTO() GTEST_SKIP() << "needs libcrypto"
#endif

namespace weft::weft_run {

using dist::Child;
using ::testing::HasSubstr;
using ::testing::Not;

/// weft-run with flags, and a line for bash as each rank's program.
inline std::vector<std::string> line(std::vector<std::string> flags, const std::string& script) {
  flags.insert(flags.begin(), WEFT_RUN);
  flags.insert(flags.end(), {"bash", "-c", script});
  return flags;
}

/// How often a string occurs in another.
inline int count(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++times;
  return times;
}

/// Whether a process with this number is alive (or a zombie).
inline bool lives(pid_t process) { return ::kill(process, 0) == 0; }

/// Waits until a process has ended; false: it is alive after ten seconds.
inline bool goes(pid_t process) {
  for (int i = 0; i < 1000 && lives(process); ++i) ::usleep(10'000);
  return !lives(process);
}

}  // namespace weft::weft_run
