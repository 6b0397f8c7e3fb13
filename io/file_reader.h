// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/printable.h"
#include "io/descriptor.h"
#include "kernels/error.h"

namespace weft {

/// Reads a file piece by piece into the caller's memory (`pread`). It is no memory map: if another process truncates
/// the file, a read fails instead of a SIGBUS, and pages of copied weights do not stay in memory.
class FileReader {
 public:
  /// `what` begins error messages, as in `safetensors: FILE: …`. Errors: cannot be opened, is no regular file.
  FileReader(const std::filesystem::path& path, std::string what);

  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  /// Exactly `bytes` bytes from `offset` on. Errors: the file ends before, the disk fails.
  void read(uint64_t offset, void* to, uint64_t bytes) const;

  /// Throws `WHAT: FILE: parts…` on one line.
  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail(what_, ": ", printable(str(path_, ": ", parts...)));
  }

 private:
  std::string path_, what_;
  Descriptor file_;
  uint64_t size_ = 0;
};

}  // namespace weft
