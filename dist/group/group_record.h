// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dist/group/collective.h"
#include "dist/rendezvous/membership.h"
#include "dist/rendezvous/store.h"

namespace weft::dist {

using Clock = std::chrono::steady_clock;

/// The last collectives of a rank in a group, for its report when something goes wrong. Thread-safe.
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
  struct Entry {
    std::string what;
    State state = State::queued;
    Clock::time_point queued, started, ended;
  };

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  uint64_t first_ = 0;  // number of entries_.front()
};

/// A group's record of itself on this rank, whatever moves its data: its ranks, its collectives, its failure.
/// Thread-safe. Its threads and the group share it.
class GroupRecord {
 public:
  /// `members`: the job's ranks of the group's; empty: the same numbers. `membership` may be null.
  GroupRecord(std::string name, int rank, int size, GroupOptions options, std::shared_ptr<Membership> membership = {},
              std::vector<int> members = {});

  const std::string name;
  const int rank, size;
  const GroupOptions options;
  const std::shared_ptr<Membership> membership;
  const std::vector<int> members;

  FlightLog log;
  std::atomic<uint64_t> bytes_sent{0};
  /// The time in collectives; the groups of a split share it.
  std::shared_ptr<std::atomic<int64_t>> nanoseconds = std::make_shared<std::atomic<int64_t>>(0);

  /// A collective begins and ends on this rank; one at a time. `took`: what a device says; else since begin().
  void begin(const CollectivePtr& collective);
  void finish(const Collective& collective, bool well, std::optional<Clock::duration> took = {});
  /// The one under way ends with an error, whose text may take a while.
  void give_up();

  enum class Cause { here, abort };
  /// The first failure ends the group and is kept; true for it. One that is no abort() prints the flight log on stderr.
  bool fail(const std::string& reason, Cause cause) { return fail(reason, cause, /*said=*/false, /*prints=*/true); }
  /// Fails the group when another rank has failed. A rank that reports its own failure may have ended by an error that
  /// the collective under way here announced to all ranks. Then the remaining messages are awaited until kLastMessages
  /// after the failure or the collective's deadline.
  void fail_after_running(const Failure& failure);
  /// The membership tells of a failure. One rank prints the reason and a flight log.
  void fail_told(const Failure& failure) { fail(failure.reason, Cause::here, /*said=*/false, prints(failure)); }
  bool has_failed() const;
  std::string failure() const;
  bool was_aborted() const;
  /// Throws `all_reduce 'x' on rank 1: reason` when the group has failed.
  void check_alive(const Collective& collective) const;

  /// A key of a store by which the ranks tell each other why they end the group; before the group is used.
  void explain_in(std::shared_ptr<Store> store, std::string key);
  /// Tells the others why this rank ended the group: through the store, and with `announce` through the membership too.
  void publish(const std::string& reason, bool announce) noexcept;
  /// Waits for what the membership or another rank has to say of a connection that broke.
  void wait_for_explanation(Milliseconds time);
  /// Waits until this rank has failed or heard of a failure, `time` at most.
  void wait_for_failure(Milliseconds time);

  /// `all_reduce #412 'fc.bias' f32[1000] of group world`.
  std::string describe(const Collective& collective) const;
  /// `silent rank 0 (…)` where rank 0, through which ranks hear of each other, does not answer; else empty.
  std::string silence() const;
  /// Whether this rank, and no other of the group, looks for who is missing from the collective, within `time`.
  bool claims(const std::string& what, const Collective& collective, Milliseconds time) const;
  /// Who has not come to the collective, as far as the membership knows; without one, `waits_for`, which for a
  /// monitored barrier are all that are missing.
  std::string missing(const Collective& collective, const std::vector<int>& waits_for) const;
  /// `all_reduce #4 'x' f32[8] of group world passed its deadline of 600 s on rank 0: missing …`.
  std::string past_deadline(const Collective& collective, const std::vector<int>& waits_for) const;

  /// How long the collective may take.
  Milliseconds timeout_of(const Collective& collective) const { return collective.timeout.value_or(options.timeout); }
  /// The collective under way since longer than options.stall_report, once, on one of the ranks that wait; else null.
  CollectivePtr take_stalled();
  /// The collective under way since longer than its timeout; null otherwise.
  CollectivePtr overdue() const;
  /// The collective under way is past its deadline: the next one. If another rank investigates already, the deadline is
  /// kLook later: that rank will report. A missing rank that is alive and works on a file renews the collective's whole
  /// timeout, for ten minutes of one file at most: a busy disk is no failure.
  Clock::time_point extended_deadline();

  /// The flight log with a title goes to stderr, or into a file of options.records.
  void print_report() const;

 private:
  bool fail(const std::string& reason, Cause cause, bool said, bool prints);
  bool prints(const Failure& failure) const;
  std::string report() const;

  struct Running {
    CollectivePtr collective;
    Clock::time_point since;
    bool reported = false;
  };

  void report(Progress progress, const Collective& collective) const;
  std::vector<MemberState> states() const;
  bool has_come(const MemberState& state, const Collective& collective) const;

  mutable std::mutex mutex_;
  std::condition_variable failed_;  // or has finished a collective
  std::string failure_;
  Cause cause_ = Cause::here;
  std::shared_ptr<Store> store_;  // for explanations
  std::string key_;
  Running running_;
  uint64_t last_begun_ = 0, last_finished_ = 0;
};
using GroupRecordPtr = std::shared_ptr<GroupRecord>;

/// The longest time that a failed rank's last messages may be on their way.
inline constexpr Milliseconds kLastMessages{2000};

/// How long the one rank that looks for who is missing may take until the others look too.
inline constexpr Milliseconds kLook{2000};

/// `60 s`, `0.25 s`.
std::string seconds(Milliseconds time);

}  // namespace weft::dist
