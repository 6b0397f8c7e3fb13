// SPDX-License-Identifier: Apache-2.0
#include "core/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/error.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// A file descriptor that closes itself.
struct Descriptor {
  int fd;
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

void write_all(int fd, std::string_view bytes, const AtomicFile& file) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) file.fail_write(errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

AtomicFile::AtomicFile(fs::path path, std::string what) : path_(std::move(path)), what_(std::move(what)) {
  std::error_code ignored;
  WEFT_CHECK(path_.has_filename(), what_, ": expected a file name, got '", path_.string(), "'");
  WEFT_CHECK(!fs::is_directory(path_, ignored), what_, ": expected a file, got the folder ", path_.string());
  WEFT_CHECK(fs::is_directory(folder_of(path_), ignored), what_, ": expected an existing folder for ", path_.string(),
             ", got none at ", folder_of(path_).string());
  temporary_ = folder_of(path_) / str(".", path_.filename().string(), ".", ::getpid(), ".tmp");
}

AtomicFile::~AtomicFile() {
  std::error_code ignored;
  if (!committed_) fs::remove(temporary_, ignored);
}

void AtomicFile::commit() {
  {
    const Descriptor data(::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC));
    if (data.fd < 0 || ::fsync(data.fd) != 0) fail_write(errno);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write(errno);
  committed_ = true;
  // Some network file systems cannot fsync a folder; the rename itself has succeeded, so that is no error.
  const Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd >= 0) static_cast<void>(::fsync(folder.fd));
}

void AtomicFile::fail_write(int error_number) const {
  std::error_code ignored;
  const char* survivor = fs::exists(path_, ignored) ? " The old file is unchanged." : "";
  const char* hint = error_number == ENOSPC || error_number == EDQUOT ? " Free some space or write elsewhere." : "";
  fail(what_, ": expected to write ", path_.string(), ", got '", std::strerror(error_number), "'.", survivor, hint);
}

void write_atomically(const fs::path& path, std::string_view bytes, const std::string& what) {
  AtomicFile file(path, what);
  const Descriptor out(::open(file.temporary().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (out.fd < 0) file.fail_write(errno);
  write_all(out.fd, bytes, file);
  file.commit();
}

}  // namespace weft
