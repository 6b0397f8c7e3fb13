// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "train/stopwatch.h"

namespace weft::jsc {

using train::Stopwatch;

/// `elapsed: 00 hours 06 min 04 sec`, the line by which the course compares runs.
std::string elapsed_line(double seconds);

}  // namespace weft::jsc
