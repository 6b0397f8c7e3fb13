// SPDX-License-Identifier: Apache-2.0
#include "io/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace weft {

FileReader::FileReader(const std::filesystem::path& path, std::string what)
    : path_(path.string()), what_(std::move(what)) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // does not wait for the writer of a named pipe
  if (fd_ < 0) bad("expected to open it, got '", std::strerror(errno), "'");
  struct stat facts {};
  if (::fstat(fd_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    ::close(fd_);
    bad("expected a file, got something else");
  }
  size_ = static_cast<uint64_t>(facts.st_size);
}

FileReader::~FileReader() { ::close(fd_); }

void FileReader::read(uint64_t offset, void* to, uint64_t bytes) const {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd_, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      bad("expected to read ", bytes, " bytes at ", offset, ", got '", got ? std::strerror(errno) : "end of file", "'");
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
}

}  // namespace weft
