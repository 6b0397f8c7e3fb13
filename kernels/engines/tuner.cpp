// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/tuner.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "kernels/error.h"
#include "kernels/runtime/kernel_variant.h"

namespace weft::kernels::vendor {
namespace {
constexpr std::string_view kMakers[] = {"own", "cublaslt", "cudnn"};
constexpr int kVariantsTried = 64;
}  // namespace

std::string text_of(Choice choice) {
  std::string text(kMakers[static_cast<int>(choice.maker)]);
  return choice.variant ? text + '#' + std::to_string(choice.variant) : text;
}

std::optional<Choice> parse_choice(const std::string& text) {
  for (int maker = 0; maker < 3; ++maker)
    for (int variant = 0; variant < (maker ? kVariantsTried : 1); ++variant)
      if (const Choice choice{static_cast<Maker>(maker), variant}; text_of(choice) == text) return choice;
  return std::nullopt;
}

namespace {

constexpr int kSamples = 5;
constexpr double kSampleSeconds = 200e-6;  // far above the resolution of a device's clock, about a microsecond
constexpr int kMostRepeats = 50;
/// Minimum speed-up to choose a vendor kernel: below it the choice would be noise, and ours has the same bits
/// everywhere.
constexpr double kMargin = 0.02;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

struct Tuner::Timing {
  Choice winner;
  std::string times;  ///< `own_sm90 12.3 us, cublaslt 11.9 us`
};

std::optional<Choice> Tuner::known(const Problem& problem) const {
  const std::lock_guard lock(mutex_);
  const auto found = choices_.find(problem);
  return found == choices_.end() ? std::nullopt : std::optional(found->second);
}

Choice Tuner::keep(const Problem& problem, Choice choice) {
  const std::lock_guard lock(mutex_);
  return choices_.emplace(problem, choice).first->second;
}

Choice Tuner::choose(const Problem& problem, std::span<const Candidate> candidates, const Stopwatch& stopwatch) {
  WEFT_CHECK(!candidates.empty(), "tuner: ", problem.text(), " has no candidates");
  if (const auto answer = known(problem)) return *answer;
  if (candidates.size() == 1) return keep(problem, candidates[0].choice);
  const std::string text = problem.text();
  if (const auto winner = cache_.find(machine_, text))
    if (const auto choice = parse_choice(*winner))
      if (std::ranges::any_of(candidates, [&](const Candidate& one) { return one.choice == *choice; }))
        return keep(problem, *choice);
  if (!stopwatch) return candidates[0].choice;
  const Timing timing = time(candidates, stopwatch);
  const Choice kept = keep(problem, timing.winner);
  if (kept == timing.winner) cache_.add(machine_, text, text_of(kept), timing.times);
  return kept;
}

Tuner::Timing Tuner::time(std::span<const Candidate> candidates, const Stopwatch& stopwatch) const {
  struct Runner {
    const Candidate* candidate;
    int repeats;
    const char* variant;  ///< variant of our kernel
    std::vector<double> samples;
  };
  std::vector<Runner> runners;
  for (const Candidate& candidate : candidates) {
    const bool own = &candidate == &candidates[0];
    note_kernel_variant("");
    try {
      stopwatch(candidate.run, 1);  // warms up: code is loaded, memory is obtained, clocks rise
      const double seconds = std::max(stopwatch(candidate.run, 1), 1e-9);
      const double repeats = std::ceil(kSampleSeconds / seconds);
      runners.push_back({&candidate,
                         static_cast<int>(std::clamp<double>(repeats, 1, kMostRepeats)),
                         own ? noted_kernel_variant() : "",
                         {}});
    } catch (const Error&) {
      if (own) throw;
    }
  }
  for (int sample = 0; sample < kSamples; ++sample)  // in turn: a change of clocks meets them all
    for (Runner& runner : runners)
      runner.samples.push_back(stopwatch(runner.candidate->run, runner.repeats) / runner.repeats);
  Timing timing;
  double best = 0;
  for (const Runner& runner : runners) {
    const double seconds = median(runner.samples);
    const bool own = runner.candidate == &candidates[0];
    timing.times += str(own ? "" : ", ", text_of(runner.candidate->choice), *runner.variant ? "_" : "", runner.variant,
                        ' ', std::round(seconds * 1e8) / 100, " us");
    if (own || seconds * (timing.winner == candidates[0].choice ? 1 + kMargin : 1) < best) {
      best = seconds;
      timing.winner = runner.candidate->choice;
    }
  }
  // Nothing of the call itself has run yet.
  note_kernel_variant("");
  return timing;
}

}  // namespace weft::kernels::vendor
