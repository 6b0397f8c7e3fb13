// SPDX-License-Identifier: Apache-2.0
#include "io/descriptor.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace weft {

Descriptor open_regular(const std::filesystem::path& path, std::string& why) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.fd < 0) {
    why = std::string("expected to open it, got '") + std::strerror(errno) + "'";
    return file;
  }
  struct stat facts {};
  if (::fstat(file.fd, &facts) == 0 && S_ISREG(facts.st_mode)) return file;
  why = "expected a file, got something else";
  return Descriptor(-1);
}

Descriptor create_temporary(const std::filesystem::path& path, mode_t mode, std::filesystem::path& temporary) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    uint32_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) break;
    char end[64];
    std::snprintf(end, sizeof end, ".%08x.%ld.tmp", number, static_cast<long>(::getpid()));
    temporary = path.parent_path() / ("." + path.filename().string() + end);
    Descriptor file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.fd >= 0 || errno != EEXIST) return file;
  }
  return Descriptor(-1);
}

}  // namespace weft
