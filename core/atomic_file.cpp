// SPDX-License-Identifier: Apache-2.0
#include "core/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

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

AtomicFile::Writer::Writer(const AtomicFile& file) : file_(file) {
  fd_ = ::open(file.temporary().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) file.fail_write(errno);
}

AtomicFile::Writer::~Writer() {
  if (fd_ >= 0) ::close(fd_);
}

void AtomicFile::Writer::write(const void* bytes, size_t size) {
  const auto* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(fd_, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) file_.fail_write(errno);
    from += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::Writer::close() {
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) file_.fail_write(errno);  // network file systems report a full disk here
}

void write_atomically(const fs::path& path, std::string_view bytes, const std::string& what) {
  AtomicFile file(path, what);
  AtomicFile::Writer out(file);
  out.write(bytes.data(), bytes.size());
  out.close();
  file.commit();
}

}  // namespace weft
