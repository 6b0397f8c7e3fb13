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

/// As the store keeps it.
std::string packed_place(const RankPlace& place);

/// weft::enter_emulator() with a GPU for each rank of this host, at most 64; where the launcher does not say how many
/// these are, for each rank of the job.
std::string enter_emulator(const std::string& device);

/// The device of a rank. `cuda`: visible GPU number local_rank (the only one if the launcher shows each rank its own);
/// `auto`: that, else the CPU; else the named device. Errors: no such device.
Device choose_device(const std::string& text, int local_rank, int gpus);

/// Errors: a rank reports an error; ranks have different backends; with nccl, two ranks share a GPU. The last two show
/// a table of the ranks, at most kTableRows of them.
inline constexpr size_t kTableRows = 64;
void check_places(const std::vector<RankPlace>& places);

/// A rank's number among those of its machine, and their count.
struct LocalRank {
  int rank = 0, size = 1;
};
std::vector<LocalRank> local_ranks(const std::vector<RankPlace>& places);

/// Every rank tells rank 0 its place; rank 0 checks them together and tells each rank its number on its machine: two
/// messages a rank. Collective; use a `name` once per job. Errors: check_places() on all ranks; a rank died or did not
/// answer.
LocalRank exchange_places(Session& session, const std::string& name, const RankPlace& own,
                          const LaunchEnvironment& environment, Milliseconds timeout);

/// The backend. `auto`: nccl on GPUs; else mpi if this process is an MPI rank (but not by Slurm's PMI, which not every
/// MPI supports); else gloo; backends that this build lacks are skipped. A named backend is checked against the
/// launcher. Errors: no backend fits; mpi in a process that is no MPI rank.
std::string choose_backend(const std::string& text, Device device, const LaunchEnvironment& environment,
                           const std::vector<std::string>& built);

/// The backends between processes that this build has.
std::vector<std::string> built_backends();

}  // namespace weft::dist
