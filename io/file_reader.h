// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "kernels/error.h"

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

/// Reads a file piece by piece into the caller's memory (`pread`). It is no memory map: if another process truncates
/// the file, a read fails instead of a SIGBUS, and pages of copied weights do not stay in memory.
class FileReader {
 public:
  /// `what` begins error messages, as in `safetensors: FILE: …`. Errors: cannot be opened, is no regular file; a Git
  /// LFS pointer.
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
  void refuse_pointer() const;

  std::string path_, what_;
  Descriptor file_;
  uint64_t size_ = 0;
};

/// The whole file. Errors: missing, no regular file (io/file_reader.h), unreadable, more than `most` bytes; `what`
/// begins the text.
std::vector<uint8_t> read_file(const std::filesystem::path& path, const std::string& what = "data",
                               uint64_t most = UINT64_MAX);
/// Reads a file as a string: JSON, YAML, vocabularies.
std::string read_text(const std::filesystem::path& path, const std::string& what, uint64_t most = UINT64_MAX);
/// Replaces the file as AtomicFile does. Errors: the system's message.
void write_file(const std::filesystem::path& path, const std::vector<uint8_t>& bytes);
/// Lines of a text file without line ends and without trailing empty lines.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// Unpacks gzip (one or several members), at most `most` bytes: a byte may expand to a thousand, so the caller sets the
/// limit. Errors name `path`: not gzip, corrupt, truncated; without zlib: how to get it.
std::vector<uint8_t> gunzip(const std::vector<uint8_t>& packed, const std::string& path, uint64_t most = UINT64_MAX);

}  // namespace weft
