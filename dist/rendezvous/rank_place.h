// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "dist/rendezvous/launch_environment.h"
#include "dist/rendezvous/session.h"
#include "kernels/device.h"

namespace weft::dist {

/// A rank's machine and device; ranks exchange this before they create a group.
struct RankPlace {
  std::string host;
  std::string machine;  ///< host_identity(): the same on all ranks of one machine
  int local_rank = -1;  ///< -1: the launcher does not tell
  Device device;
  std::string gpu;  ///< kernels::Runtime::identity(); empty for cpu
  std::string backend;
  std::string error;  ///< why this rank cannot continue
};

/// weft::enter_emulator() with a GPU for each rank of this host, at most 64; where the launcher does not say how many
/// these are, for each rank of the job.
std::string enter_emulator(const std::string& device);

/// The device of a rank. `cuda`: visible GPU number local_rank (the only one if the launcher shows each rank its own);
/// `auto`: that, else the CPU; else the named device. Errors: no such device.
Device choose_device(const std::string& text, int local_rank, int gpus);

/// Gathers the RankPlace of all ranks, in their order. Collective; use a `name` once per job. Errors: a rank died or
/// did not answer.
std::vector<RankPlace> exchange_places(Session& session, const std::string& name, const RankPlace& own,
                                       const LaunchEnvironment& environment, Milliseconds timeout);

/// Errors: a rank reports an error; ranks have different backends; with nccl, two ranks share a GPU. The last two show
/// a table of the ranks.
void check_places(const std::vector<RankPlace>& places);

/// A rank's number among those of its machine, and their count.
struct LocalRank {
  int rank = 0, size = 1;
};
LocalRank local_rank_of(const std::vector<RankPlace>& places, int rank);

/// The backend. `auto`: nccl on GPUs; else mpi if this process is an MPI rank (but not by Slurm's PMI, which not every
/// MPI supports); else gloo; backends that this build lacks are skipped. A named backend is checked against the
/// launcher. Errors: no backend fits; mpi in a process that is no MPI rank.
std::string choose_backend(const std::string& text, Device device, const LaunchEnvironment& environment,
                           const std::vector<std::string>& built);

/// The backends between processes that this build has.
std::vector<std::string> built_backends();

}  // namespace weft::dist
