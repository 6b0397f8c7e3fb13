// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dist/collective.h"
#include "dist/flight_log.h"
#include "dist/membership.h"

namespace weft::dist {

using Clock = std::chrono::steady_clock;

/// What a group knows of itself on this rank, whatever moves its data: who is in it, what it did, how it failed.
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

  /// A collective begins and ends on this rank; one at a time.
  void begin(const CollectivePtr& collective);
  void finish(const Collective& collective, bool well);

  /// The first failure ends the group and is kept; true for it. With `print`, the flight log goes to stderr.
  bool fail(const std::string& reason, bool print);
  bool has_failed() const;
  std::string failure() const;
  /// Throws `all_reduce 'x' on rank 1: reason` when the group has failed.
  void check_alive(const Collective& collective) const;

  /// True when a failure came within the time.
  bool wait_for_failure(Milliseconds time) const;

  /// `all_reduce #412 'fc.bias' f32[1000] of group world`.
  std::string describe(const Collective& collective) const;
  /// Who has not come to the collective, as far as the membership knows; without one, `waits_for`.
  std::string missing(const Collective& collective, const std::vector<int>& waits_for) const;
  /// `all_reduce #4 'x' f32[8] of group world passed its deadline of 600 s on rank 0: missing …`.
  std::string past_deadline(const Collective& collective, const std::vector<int>& waits_for) const;

  /// The collective under way since longer than options.stall_report, once; null otherwise.
  CollectivePtr take_stalled();
  /// The collective under way since longer than options.timeout; null otherwise.
  CollectivePtr overdue() const;

  /// The flight log with a title, for stderr.
  std::string report() const;

 private:
  struct Running {
    CollectivePtr collective;
    Clock::time_point since;
    bool reported = false;
  };

  mutable std::mutex mutex_;
  mutable std::condition_variable failed_;
  std::string failure_;
  Running running_;
  uint64_t last_begun_ = 0, last_finished_ = 0;
};
using GroupRecordPtr = std::shared_ptr<GroupRecord>;

/// `60 s`, `0.25 s`.
std::string seconds(Milliseconds time);

}  // namespace weft::dist
