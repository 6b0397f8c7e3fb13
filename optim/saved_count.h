// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

namespace weft::optim {

/// Whether a saved number counts something: whole, at least 0.
inline bool is_count(double value) { return value >= 0 && value < 0x1p53 && value == std::floor(value); }

}  // namespace weft::optim
