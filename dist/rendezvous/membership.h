// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace weft::dist {

/// A rank's progress: the last collectives begun and finished (numbers within a group).
struct Progress {
  std::string group{};
  uint64_t begun = 0, finished = 0;
  std::string name{};  ///< name of the last collective begun: `all_reduce layer4.1.conv2.weight…fc.bias f32[2097152]`
};

/// A rank's state, as the others see it.
struct MemberState {
  int rank = 0;
  std::string host;
  int64_t process = 0;             ///< its process id there
  double seconds_since_heard = 0;  ///< since its last heartbeat: large if the process is stopped or the network lost
  bool left = false;               ///< it has ended normally
  std::string disk{};              ///< its work on a file (io/disk_work.h): `writing run/summary.json`; or empty
  double disk_seconds = 0;         ///< for how long
  bool silent = false;  ///< rank 0, which does not answer: its last heartbeat and its name are all that is known
  Progress progress;    ///< the last report
  std::vector<Progress> earlier{};  ///< the last reports of its other groups, without names; kMaxGroups at most
};

/// Groups of which a rank's progress is known: the latest reported.
inline constexpr size_t kMaxGroups = 16;
/// Keeps the report, and earlier reports of other groups.
void keep(MemberState& state, const Progress& progress);

/// Why the job cannot continue.
struct Failure {
  int rank = -1;  ///< the rank that failed; -1: no particular one
  std::string host;
  std::string reason;      ///< `rank 2 (process 4711 on jwb0021) has died`
  bool announced = false;  ///< that rank said so itself
  std::chrono::steady_clock::time_point heard = std::chrono::steady_clock::now();
};

/// The ranks of the job and whether they are alive. A thread sends heartbeats to rank 0's process over its own
/// connection; if a connection breaks without leave(), the rank is dead, and all ranks are told. Thread-safe.
class Membership {
 public:
  virtual ~Membership() = default;
  /// The callback runs once, on a thread of the membership, with the first failure that this rank receives. After an
  /// earlier failure the callback runs at once on this thread. Heartbeats and states() wait for it. Returns a number
  /// for remove().
  virtual int on_failure(std::function<void(const Failure&)> callback) = 0;
  /// Returns after a running callback has ended, unless the callback itself is the caller.
  virtual void remove(int number) = 0;
  /// Tells all ranks, this one too, that this rank gives up, and why.
  virtual void announce(const std::string& reason) = 0;
  /// Is sent with the next heartbeats.
  virtual void report(const Progress& progress) = 0;
  /// The last heartbeats of all ranks, from rank 0. If rank 0 does not answer within some seconds: rank 0 alone,
  /// `silent`.
  /// `quiet`: only ranks that were not heard of for `quiet` seconds, at most 128.
  virtual std::vector<MemberState> states(double quiet = 0) = 0;
  /// Whether this rank is the first that asks within `time`: one rank looks and tells, where all see the same. True
  /// where rank 0 does not answer.
  virtual bool claim(const std::string& topic, std::chrono::milliseconds time) = 0;
  /// This rank ends normally: its connection may close.
  virtual void leave() = 0;
};

/// `silent rank 0 (process 4711 on gpu1, last heard of 6 s ago: is it stopped?)` where rank 0 did not answer, and the
/// same of all ranks that were not heard of for `quiet` seconds; else empty.
std::string silence_in(const std::vector<MemberState>& states, double quiet = std::numeric_limits<double>::infinity());
/// `2, 5 to 7`: ranks in ascending order, for error messages; at most 20 ranges.
std::string rank_list(const std::vector<int>& ranks);
/// A rank that was not heard of for so long is named; heartbeats come each second.
inline constexpr double kQuietSeconds = 3;

}  // namespace weft::dist
