// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "dist/rendezvous/membership.h"
#include "dist/rendezvous/socket.h"

namespace weft::dist {

/// MPI in this process: initialised with the first group unless the program has done so; finalised at the program's
/// exit if it was initialised here.
struct MpiWorld {
  int rank = 0, size = 1;
};

/// Errors: the MPI does not allow calls from several threads. MPI_Init cannot be cancelled: this process ends
/// with a message and exit code 1 if ranks miss the deadline or the membership (may be null) reports a
/// failure.
MpiWorld begin_mpi(TimePoint deadline, Membership* membership = nullptr);

/// A group has failed: MPI_Finalize would wait for ranks that may never arrive. So the program's exit waits a few
/// seconds and then skips MPI_Finalize (mpirun reports this as improper).
void abandon_mpi();

/// The message of an MPI return code; empty for success.
std::string mpi_error(int code);

/// Gathers a string (at most kMaxMpiText bytes) of each rank of MPI's world, for ranks that have no store yet.
/// Collective; initialises MPI. Nothing if this process is not rank `rank` of a world of `size`, or the build has no
/// MPI. Errors: ranks that miss the deadline.
std::vector<std::string> mpi_all_gather_text(const std::string& text, int rank, int size, TimePoint deadline);

inline constexpr size_t kMaxMpiText = 4000;

}  // namespace weft::dist
