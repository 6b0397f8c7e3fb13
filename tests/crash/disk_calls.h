// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace weft::crash {

/// A system call that changes the disk.
struct DiskCall {
  enum Kind { write, truncate, sync, rename } kind;
  std::string path;  ///< the file or folder; the new name, for rename
  size_t bytes = 0;  ///< length of a write
};

/// The fate of the call.
struct Fate {
  enum Kind { happens, fails, kills } kind = happens;
  int error_number = 0;  ///< fails: with this errno
  size_t written = 0;    ///< kills: this much of a write reaches the file first
};

/// Every write, truncate, fsync and rename of this process on files below `folder` asks `decide` first: this test
/// program defines these functions itself, so that Weft and libhdf5 call them instead of the C library's. An empty
/// `decide` lets all pass again.
void watch_disk(const std::string& folder, std::function<Fate(const DiskCall&)> decide);

}  // namespace weft::crash
