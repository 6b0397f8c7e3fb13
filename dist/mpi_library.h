// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::dist {

/// MPI in this process: begun with the first group unless the program has, and ended at the program's exit if it was
/// begun here.
struct MpiWorld {
  int rank = 0, size = 1;
};

/// Errors: an MPI that cannot be called from several threads.
MpiWorld begin_mpi();

/// A group has failed: the end of MPI would wait for ranks that may never come, so the program's exit waits for them a
/// few seconds and then does without it (mpirun calls that improper, which it is).
void abandon_mpi();

/// What a return code of MPI says; empty for success.
std::string mpi_error(int code);

}  // namespace weft::dist
