// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

namespace weft {

/// A file descriptor that closes itself.
struct Descriptor {
  int fd = -1;
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
};

/// Opens a regular file for reading: the way in for every file that a user names. Named pipes, devices and folders are
/// refused at once, without waiting for a pipe's writer. After a failure fd is -1 and `why` says what was there:
/// `expected to open it, got 'Permission denied'`, `expected a file, got something else`.
Descriptor open_regular(const std::filesystem::path& path, std::string& why);

/// Creates a file beside `path` for writing and reading: `.NAME.RANDOM.PID.tmp`, a name that was free. Links are not
/// followed, and nobody can prepare the name. After a failure fd is -1 and errno says why.
Descriptor create_temporary(const std::filesystem::path& path, mode_t mode, std::filesystem::path& temporary);

}  // namespace weft
