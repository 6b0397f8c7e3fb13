// SPDX-License-Identifier: Apache-2.0
#include "io/file_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace weft {

FileReader::FileReader(const std::filesystem::path& path, std::string what)
    : path_(path.string()), what_(std::move(what)), file_(-1) {
  std::string why;
  Descriptor opened = open_regular(path, why);
  struct stat facts {};
  if (opened.fd < 0) bad(why);
  if (::fstat(opened.fd, &facts) != 0) bad("expected its size, got '", std::strerror(errno), "'");
  size_ = static_cast<uint64_t>(facts.st_size);
  file_.fd = std::exchange(opened.fd, -1);
}

void FileReader::read(uint64_t offset, void* to, uint64_t bytes) const {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(file_.fd, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      bad("expected to read ", bytes, " bytes at ", offset, ", got '", got ? std::strerror(errno) : "end of file", "'");
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
}

}  // namespace weft
