// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

// Memory shared by processes of one machine: an unnamed file, which another process opens through its owner's
// descriptor.

namespace emulator {

/// Identifies a shared file; fits into CUDA's IPC handles. Valid while the owner lives and has not closed the file.
struct SharedFile {
  int32_t process = 0, file = -1;
  uint64_t number = 0;  ///< nearly unique on the machine: distinguishes a process's files
  uint64_t bytes = 0;
};

/// Creates a file; `file` is -1 if the system has none left.
SharedFile create_shared_file(size_t bytes);
/// Opens the file in this process; returns -1 if the owner has ended or closed the file.
int open_shared_file(const SharedFile& shared);
/// Maps `bytes` bytes, readable and writable; returns nullptr on failure. `at`: the exact address; replaces an earlier
/// mapping.
void* map_file(int file, size_t bytes, void* at = nullptr, size_t offset = 0);

}  // namespace emulator
