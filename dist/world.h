// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/process_group.h"

namespace weft::dist {

struct InitOptions {
  std::string backend =
      "auto";                   ///< auto: nccl on GPUs; else mpi where this process is an MPI rank, gloo, in that order
  std::string device = "auto";  ///< auto: the GPU of this rank, else cpu; or cpu, simt, cuda, cuda:N
  GroupOptions group = {};
};

/// This process's place in the job.
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

 private:
  friend World init(const InitOptions& options);
  friend class WorldMaker;
  ProcessGroupPtr group_;
  std::shared_ptr<Membership> membership_;
  std::string launcher_;
  Device device_;
  int local_rank_ = 0, local_size_ = 1;
};

/// Finds the other ranks and connects to them. Once per process. Alone (no launcher): a world of one. Errors: a
/// launcher's variables that contradict each other, ranks that do not come in time (named), two ranks on one GPU (a
/// table).
World init(const InitOptions& options = {});

}  // namespace weft::dist
