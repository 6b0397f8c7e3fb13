// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weft::dist {

/// How far a rank has come: the last collective that it began and the last that it finished (numbers of one group).
struct Progress {
  std::string group{};
  uint64_t begun = 0, finished = 0;
  std::string name{};  ///< of the last one begun: `all_reduce layer4.1.conv2.weight…fc.bias f32[2097152]`
};

/// A rank as the others see it.
struct MemberState {
  int rank = 0;
  std::string host;
  int64_t process = 0;             ///< its process id there
  double seconds_since_heard = 0;  ///< since its last heartbeat: large for a stopped process or a lost network
  bool left = false;               ///< it has ended in order
  Progress progress;
};

/// Why the job cannot go on.
struct Failure {
  int rank = -1;  ///< whose fault; -1: nobody's in particular
  std::string host;
  std::string reason;  ///< `rank 2 (process 4711 on jwb0021) has died`
};

/// Who is in the job, and whether they still live. A thread sends heartbeats to rank 0's process over a connection of
/// its own; a connection that breaks without leave() is a dead rank, and everybody is told. Thread-safe.
class Membership {
 public:
  virtual ~Membership() = default;
  /// Called (on a thread of the membership) once, with the first failure that this rank hears of. Registered late, it
  /// is called at once, by this thread, where there was one. Returns a number for remove().
  virtual int on_failure(std::function<void(const Failure&)> callback) = 0;
  /// Returns when the callback is not running any more, unless it is itself the caller.
  virtual void remove(int number) = 0;
  /// Tells everybody, this rank too, that this rank gives up, and why.
  virtual void announce(const std::string& reason) = 0;
  /// Sent along with the next heartbeats.
  virtual void report(const Progress& progress) = 0;
  /// What the last heartbeats of all ranks said; asks rank 0. Where rank 0 does not answer within some seconds: rank 0
  /// alone, with how long it has been silent.
  virtual std::vector<MemberState> states() = 0;
  /// This rank ends in order: its connection may close.
  virtual void leave() = 0;
};

}  // namespace weft::dist
