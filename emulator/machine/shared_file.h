// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

// Memory that processes of one machine share: a file without a name, which another process finds by its owner's.

namespace emulator {

/// Fits into the handles that CUDA sends between processes. It is good as long as its owner lives and has not closed
/// it.
struct SharedFile {
  int32_t process = 0, file = -1;
  uint64_t number = 0;  ///< nearly unique on the machine: tells apart files of one process
  uint64_t bytes = 0;
};

/// `file` is -1 when the system has no more.
SharedFile create_shared_file(size_t bytes);
/// A descriptor of this process; -1: the owner is gone or has closed it.
int open_shared_file(const SharedFile& shared);
/// All of it, readable and writable; nullptr: it cannot be. `at`: maps it exactly there, over what was mapped.
void* map_file(int file, size_t bytes, void* at = nullptr, size_t offset = 0);

}  // namespace emulator
