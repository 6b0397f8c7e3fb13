// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/elapsed.h"

#include <cmath>
#include <cstdio>

namespace weft::jsc {

std::string elapsed_line(double seconds) {
  const long long whole = std::llround(seconds);
  char line[80];
  std::snprintf(line, sizeof line, "elapsed: %02lld hours %02lld min %02lld sec", whole / 3600, whole / 60 % 60,
                whole % 60);
  return line;
}

}  // namespace weft::jsc
