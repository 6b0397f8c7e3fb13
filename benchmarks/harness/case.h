// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

// Shared by Weft's benchmarks and those of its peers: a case is a name, a unit and something to run. Nothing here
// depends on a framework, so that both programs measure with the same clock in the same way.

namespace bench {

/// Work to time, with its data ready.
struct Work {
  std::function<void()> step;         ///< the timed step, run repeatedly
  double amount = 1;                  ///< the amount of one step: images, floating-point operations, bytes, ops
  std::function<void()> before = {};  ///< runs ahead of each step, outside of the time
  std::function<void()> wait = {};    ///< returns when the device has done all work of the steps so far
};

/// The unit implies the direction. A rate (images/s, sequences/s, GFLOP/s, TFLOP/s, GB/s) is Work::amount per second:
/// more is better. A time (ms, us, ns) is a step's divided by Work::amount, and MiB is memory: less is better.
struct Case {
  std::string name;
  std::string unit;
  std::function<Work()> prepare = {};
  /// Instead of `prepare`: the body of a process of its own. The value is the process's peak memory (MiB) or the time
  /// from its start to its end (ms).
  std::function<void()> process = {};
  /// Instead of both: the value itself.
  std::function<double()> value = {};
};

using Cases = std::vector<Case>;

}  // namespace bench
