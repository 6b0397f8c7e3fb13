// SPDX-License-Identifier: Apache-2.0
#pragma once
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

}  // namespace weft::weft_run
