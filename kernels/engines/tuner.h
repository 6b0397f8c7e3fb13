// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "kernels/engines/problem.h"
#include "kernels/engines/tune_cache.h"

namespace weft::kernels::vendor {

/// The owner of the kernel that computes a problem.
enum class Maker : uint8_t { own, cublaslt, cudnn };

/// One way to compute a problem. A library offers several, best by its heuristic first.
struct Choice {
  Maker maker = Maker::own;
  int variant = 0;
  bool operator==(const Choice&) const = default;
};

/// `own`, `cublaslt`, `cudnn#2`.
std::string text_of(Choice choice);
/// None where the text is not what text_of writes.
std::optional<Choice> parse_choice(const std::string& text);

/// One way to compute a problem: `run` enqueues it once, and may do so any number of times.
struct Candidate {
  Choice choice;
  std::function<void()> run;
};

/// Seconds that the device takes for `repeats` runs.
using Stopwatch = std::function<double(const std::function<void()>& run, int repeats)>;

/// Finds the fastest candidate of each problem on one device, once: the answer is kept in memory and in the cache.
/// Knows neither CUDA nor a clock. Thread-safe; two threads that meet a new problem at once both time it, and the first
/// answer holds for both.
class Tuner {
 public:
  /// `machine`: all else that a timing depends on (GPU, driver, versions of the libraries and of our kernels).
  Tuner(std::string machine, TuneCache& cache) : machine_(std::move(machine)), cache_(cache) {}

  /// The answer in memory.
  std::optional<Choice> known(const Problem& problem) const;

  /// The answer from memory, else from the cache where it names a candidate, else by timing. candidates[0] is our own
  /// kernel, which must not fail; another that throws weft::Error is out. Without a stopwatch (a graph is captured) a
  /// new problem is computed by candidates[0] and nothing is kept.
  Choice choose(const Problem& problem, std::span<const Candidate> candidates, const Stopwatch& stopwatch);

 private:
  struct Timing;
  Timing time(std::span<const Candidate> candidates, const Stopwatch& stopwatch) const;
  Choice keep(const Problem& problem, Choice choice);

  const std::string machine_;
  TuneCache& cache_;
  mutable std::mutex mutex_;
  std::unordered_map<Problem, Choice, ProblemHash> choices_;
};

}  // namespace weft::kernels::vendor
