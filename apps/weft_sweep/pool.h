// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/weft_sweep/sweep.h"

namespace weft::weft_sweep {

/// Runs the points of a sweep, a few at a time, each with its own log (`log.txt` in its folder) and process group.
/// SIGINT, SIGTERM and SIGUSR1 are forwarded to them; after the first two no new run starts, and a second one kills.
class Pool {
 public:
  struct Options {
    int at_a_time = 1;
    std::vector<std::string> gpus = {};  ///< divided among the job slots; empty: CUDA_VISIBLE_DEVICES stays unchanged
    std::function<bool(size_t)> loses = {};  ///< asked for each running point, again and again: stop it early?
  };
  Pool(const Sweep& sweep, Options options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Asks `next` for a point when one can start, until there is none, and calls `ended` after each. Points that another
  /// process is running are skipped, and `busy` is called for them. Errors: the program cannot be started.
  void run(const std::function<std::optional<size_t>()>& next,
           const std::function<void(size_t, const PointResult&)>& ended, const std::function<void(size_t)>& busy);

  /// The signal that ended the sweep early; 0: none.
  int stopped_by() const { return stopped_by_; }

 private:
  struct Running {
    pid_t process;
    size_t point;
    int place, lock;
    std::chrono::steady_clock::time_point start;
    bool lost = false;  ///< it was told to stop early
  };
  bool start(size_t point);
  void end(const Running& running, int status, const std::function<void(size_t, const PointResult&)>& ended);
  void wait(const std::function<void(size_t, const PointResult&)>& ended);
  void stop_losers();
  int free_place() const;

  const Sweep& sweep_;
  Options options_;
  std::vector<Running> running_;
  sigset_t waited_for_, before_;
  int stopped_by_ = 0;
};

}  // namespace weft::weft_sweep
