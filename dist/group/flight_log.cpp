// SPDX-License-Identifier: Apache-2.0
#include "dist/group/flight_log.h"

#include <cstdio>
#include <utility>

namespace weft::dist {

uint64_t FlightLog::add(std::string what) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() == kEntries) {
    entries_.pop_front();
    ++first_;
  }
  entries_.push_back({std::move(what), State::queued, Clock::now(), {}, {}});
  return first_ + entries_.size() - 1;
}

void FlightLog::change(uint64_t entry, State state) {
  const std::lock_guard lock(mutex_);
  if (entry < first_) return;  // kEntries others came since
  Entry& e = entries_[entry - first_];
  e.state = state;
  (state == State::running ? e.started : e.ended) = Clock::now();
}

std::string FlightLog::text() const {
  constexpr const char* states[] = {"queued", "running", "done", "failed"};
  const auto milliseconds = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Entry& e : entries_) {
    char times[100];
    const int length = std::snprintf(times, sizeof times, "  queued %.1f s ago", milliseconds(now - e.queued) / 1000);
    if (e.started != Clock::time_point{}) {
      const bool runs = e.state == State::running;
      const double took = milliseconds((runs ? now : e.ended) - e.started);
      std::snprintf(times + length, sizeof times - static_cast<size_t>(length), ", %s %.1f ms",
                              runs ? "runs for" : "ran", took);
    }
    char state[16];
    std::snprintf(state, sizeof state, "  %-8s ", states[static_cast<int>(e.state)]);
    text += state + e.what + times + '\n';
  }
  return text;
}

}  // namespace weft::dist
