// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dist/rendezvous/launch_environment.h"
#include "dist/rendezvous/socket.h"

namespace weft::weft_run {

/// A process that kills the ranks' remaining process groups after the launcher has ended in any way: a rank may be a
/// shell script, and the kernel sends no signal to a script's children.
class Keeper {
 public:
  /// Call it before other threads exist: it forks.
  Keeper();
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Adds a process group that must not outlive the launcher.
  void watch(pid_t group);
  /// The group has ended.
  void forget(pid_t group);

 private:
  void tell(int value);

  dist::Descriptor pipe_;
  pid_t process_;
};

/// How a rank ended.
struct Ending {
  int rank = 0;
  int status = 0;  ///< waitpid's
  /// Its exit code, or 128 + the number of the signal.
  int code() const;
  /// `rank 3 ended with exit code 1`, `rank 3 was ended by signal 9 (Killed)`.
  std::string text() const;
};

/// One rank to start.
struct Worker {
  int rank = 0;
  std::string log;  ///< a file for its output; empty: the launcher's
  dist::EnvironmentVariables variables;
};

/// The ranks of this node, each in its own process group, which ends with the launcher.
class Workers {
 public:
  Workers(const std::vector<std::string>& command, const std::vector<Worker>& workers, Keeper& keeper);
  /// Kills the remaining ranks.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  bool empty() const { return running_.empty(); }
  /// The next rank that has ended, if one has.
  std::optional<Ending> take_ended();
  /// One that a signal has ended, or ends within `time`.
  std::optional<Ending> take_killed(std::chrono::milliseconds time);
  /// One that is stopped now (SIGSTOP), but not by a debugger.
  std::optional<int> stopped_rank() const;
  void signal(int number) const;
  /// SIGTERM, then after `grace` seconds SIGKILL; returns when all have ended.
  void stop(int grace);

 private:
  void start(const std::vector<std::string>& command, const Worker& worker);

  Keeper& keeper_;
  /// The first that has ended and was not taken; 0: none.
  pid_t find_ended(bool by_signal) const;
  Ending take(pid_t process);

  std::map<pid_t, int> running_;  // process and rank
};

}  // namespace weft::weft_run
