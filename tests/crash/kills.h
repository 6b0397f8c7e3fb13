// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdlib>

namespace weft::crash {

/// How many random kills a test makes: the environment's WEFT_KILLS, or 10.
inline int kills() {
  const char* text = std::getenv("WEFT_KILLS");
  return text != nullptr ? std::max(1, std::atoi(text)) : 10;
}

}  // namespace weft::crash
