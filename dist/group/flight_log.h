// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace weft::dist {

/// The last collectives of one rank in one group: what it reports when something goes wrong. Thread-safe.
class FlightLog {
 public:
  static constexpr size_t kEntries = 256;

  enum class State : uint8_t { queued, running, done, failed };

  /// A new entry, queued; returns its number.
  uint64_t add(std::string what);
  void change(uint64_t entry, State state);
  /// One line per entry, oldest first: `  done     all_reduce #412 'fc.bias' f32[1000]  queued 3.1 s ago, ran 12.0 ms`.
  std::string text() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string what;
    State state = State::queued;
    Clock::time_point queued, started, ended;
  };

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  uint64_t first_ = 0;  // number of entries_.front()
};

}  // namespace weft::dist
