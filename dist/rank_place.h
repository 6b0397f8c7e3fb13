// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "dist/launch_environment.h"
#include "dist/session.h"
#include "kernels/device.h"

namespace weft::dist {

/// Where a rank runs and what it computes on; ranks tell each other before they build a group.
struct RankPlace {
  std::string host;
  std::string machine;  ///< host_identity(): the same on all ranks of one machine
  int local_rank = -1;  ///< -1: the launcher has not said
  Device device;
  std::string gpu;  ///< kernels::Runtime::identity(); empty for cpu and simt
  std::string backend;
  std::string error;  ///< why this rank cannot go on
};

/// The device for a rank: `cuda` is the GPU number local_rank of those that it sees (the only one where a launcher
/// shows each rank its own), `auto` that or the CPU; else what the text names. Errors: no such device.
Device choose_device(const std::string& text, int local_rank, int gpus);

/// The places of all ranks, in their order. Collective; `name` once per job. Errors: a rank died, or did not come.
std::vector<RankPlace> exchange_places(Session& session, const std::string& name, const RankPlace& own,
                                       const LaunchEnvironment& environment, Milliseconds timeout);

/// Errors: a rank has one; ranks that cannot form a group, because they have different backends, or, with nccl, because
/// two are on one GPU. Those hold a table.
void check_places(const std::vector<RankPlace>& places);

/// A rank's number among those of its machine, and how many these are.
struct LocalRank {
  int rank = 0, size = 1;
};
LocalRank local_rank_of(const std::vector<RankPlace>& places, int rank);

/// What `auto` stands for on this device: nccl on GPUs; else mpi where this process is an MPI rank (but not by Slurm's
/// PMI, which not every MPI understands); else gloo; those that this build lacks are left out. A name is checked
/// against the launcher. Errors: no backend fits; mpi in a process that is no MPI rank.
std::string choose_backend(const std::string& text, Device device, const LaunchEnvironment& environment,
                           const std::vector<std::string>& built);

/// The backends between processes that this build has.
std::vector<std::string> built_backends();

}  // namespace weft::dist
