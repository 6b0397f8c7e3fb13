// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/group/process_group.h"

namespace weft::dist {

struct InitOptions {
  bool alone = false;  ///< do not look for other ranks
  std::string backend =
      "auto";  ///< auto: nccl on GPUs; else mpi where this process is an MPI rank, gloo, in that order
  /// auto: the GPU of this rank, else cpu. emulated[:GPU]: an emulated GPU for each rank; the process starts again
  /// (core/emulated.h). Alone: see choose_device().
  std::string device = "auto";
  /// WEFT_TIMEOUT and WEFT_STALL_REPORT (seconds), WEFT_COLLECTIVES (own, library), WEFT_SECURE (off, mac, encrypt),
  /// WEFT_CHECK (1), WEFT_FLIGHT_RECORDS (a folder) and WEFT_STEP_TIMES (steps) in the environment win.
  GroupOptions group = {};
  /// How long ranks wait for each other at the start, at most group.timeout; WEFT_START_TIMEOUT (seconds) in the
  /// environment wins.
  Milliseconds start_timeout{300'000};
};

class Session;

/// This process's place in the job. Copies share it. When the last copy and all that uses the group are gone, this rank
/// leaves the job in order; it must not go before the last collective is done. Gone by an exception that unwinds the
/// stack, it tells the others that this rank gives up.
class World {
 public:
  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  int local_rank() const { return local_rank_; }  ///< among the ranks of this host
  int local_size() const { return local_size_; }
  bool is_first() const { return rank() == 0; }
  Device device() const { return device_; }
  const ProcessGroupPtr& group() const { return group_; }
  /// How the ranks found each other: `RANK and WORLD_SIZE`, `Open MPI`, `Slurm`, `alone`.
  const std::string& launcher() const { return launcher_; }
  /// Texts that all ranks share; null in a world of one and around a group.
  std::shared_ptr<Store> store() const;
  /// Who is alive; null in a world of one and around a group.
  std::shared_ptr<Membership> membership() const;
  /// `4 over gloo (RANK and WORLD_SIZE)`.
  std::string describe() const;
  /// How often the launcher has started all ranks again; 0 in the first run.
  int restarts() const { return restarts_; }
  /// WEFT_STEP_TIMES: the number of steps between two reports of StepTimes (dist/group/step_times.h); 0: none.
  int64_t step_times() const { return step_times_; }

  /// The sums over all ranks, the same bits on each of them. As all functions below, the call waits for all ranks, and
  /// `what` names the call in the stall report.
  std::vector<double> sum(const std::vector<double>& values, const std::string& what) const;
  int64_t max(int64_t value, const std::string& what) const;
  /// The strings of all ranks, by rank.
  std::vector<std::string> texts(const std::string& own, const std::string& what) const;
  std::string first_says(const std::string& own, const std::string& what) const { return texts(own, what).front(); }
  void wait_for_all(const std::string& what) const;
  /// The agreement that GraphedFunctionOptions needs of several ranks; empty in a world of one.
  std::function<bool(bool)> all_agree() const;

  /// Leaves the job now: no collective may follow, and that this process ends is no failure any more.
  void end();

  /// A world around a group that is there already, as run_ranks() makes them.
  static World around(ProcessGroupPtr group, Device device = {});

 private:
  friend World init(const InitOptions& options);
  Device where() const;               // device of small tensors
  std::shared_ptr<Session> session_;  // goes after the group, which uses it too
  ProcessGroupPtr group_;
  std::string launcher_ = "alone";
  Device device_;
  int local_rank_ = 0, local_size_ = 1, restarts_ = 0;
  int64_t step_times_ = 0;
};

/// Finds the other ranks, connects to them and waits until all are there. Once per process. Alone (no launcher): a
/// world of one. Errors: contradictory launcher variables; ranks that do not connect in time (named); two ranks on
/// one GPU with backend nccl (a table); ranks with different backends; backend mpi in a process that is no MPI
/// rank.
World init(const InitOptions& options = {});

}  // namespace weft::dist
