// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "dist/socket.h"

namespace weft::dist {

/// The texts (at most kMaxMpiText bytes) of all ranks of MPI's world, for ranks that have no store yet. Collective;
/// begins MPI. Nothing where this process is not rank `rank` of a world of `size`, or the build has no MPI. Errors:
/// ranks that do not come by the deadline.
std::vector<std::string> mpi_all_gather_text(const std::string& text, int rank, int size, TimePoint deadline);

inline constexpr size_t kMaxMpiText = 4000;

}  // namespace weft::dist
