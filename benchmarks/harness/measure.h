// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "benchmarks/harness/case.h"

namespace bench {

struct Timing {
  double seconds = 2;   ///< timed seconds of a case, all repetitions together; a repetition is one step at least
  int repetitions = 7;  ///< the value is the median of these
};

/// Warms up, then times the work: the median over the repetitions of a step's seconds. With 0
/// seconds the first step is the only one.
double seconds_per_step(const Work& work, const Timing& timing);

/// One step of `seconds` in the case's unit. Errors: an unknown unit.
double in_unit(const std::string& unit, double seconds, double amount);

/// The middle value, or the mean of the two middle ones.
double median(std::vector<double> values);

}  // namespace bench
