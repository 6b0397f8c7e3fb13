// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "dist/rendezvous/socket.h"

namespace weft::dist {

/// Gathers a string (at most kMaxMpiText bytes) of each rank of MPI's world, for ranks that have no store yet.
/// Collective; initialises MPI. Nothing if this process is not rank `rank` of a world of `size`, or the build has no
/// MPI. Errors: ranks that miss the deadline.
std::vector<std::string> mpi_all_gather_text(const std::string& text, int rank, int size, TimePoint deadline);

inline constexpr size_t kMaxMpiText = 4000;

}  // namespace weft::dist
