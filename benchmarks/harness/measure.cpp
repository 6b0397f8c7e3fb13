// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <stdexcept>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void wait(const Work& work) {
  if (work.wait) work.wait();
}

/// Seconds of `count` steps, without the preparation of each.
double time_steps(const Work& work, long count) {
  double seconds = 0;
  if (work.before) {
    for (long i = 0; i < count; ++i) {
      work.before();
      wait(work);
      const auto start = Clock::now();
      work.step();
      wait(work);
      seconds += since(start);
    }
    return seconds;
  }
  wait(work);
  const auto start = Clock::now();
  for (long i = 0; i < count; ++i) work.step();
  wait(work);
  return since(start);
}

}  // namespace

double seconds_per_step(const Work& work, const Timing& timing) {
  if (timing.seconds == 0) return time_steps(work, 1);
  const double target = timing.seconds / timing.repetitions;
  // Warm: the first step builds kernels and fills caches; then a count at a time for which the clock's resolution does
  // not matter.
  const auto begin = Clock::now();
  time_steps(work, 1);
  long count = 1;
  double seconds = 0;
  while ((seconds = time_steps(work, count)) < std::min(0.02, target)) count *= 2;
  const double one = std::max(seconds / static_cast<double>(count), 1e-10);
  while (since(begin) < std::min(0.5, target)) time_steps(work, count);

  const long steps = std::max(1L, std::lround(target / one));
  std::vector<double> times;
  for (int i = 0; i < timing.repetitions; ++i) times.push_back(time_steps(work, steps) / static_cast<double>(steps));
  return median(std::move(times));
}

double in_unit(const std::string& unit, double seconds, double amount) {
  static const std::map<std::string, double> rates = {
      {"images/s", 1}, {"sequences/s", 1}, {"tokens/s", 1}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"GB/s", 1e9}};
  static const std::map<std::string, double> times = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  if (const auto rate = rates.find(unit); rate != rates.end()) return amount / seconds / rate->second;
  if (const auto time = times.find(unit); time != times.end()) return seconds / amount / time->second;
  throw std::invalid_argument("bench: unknown unit '" + unit + "'");
}

double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("bench: no values to take the median of");
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace bench
