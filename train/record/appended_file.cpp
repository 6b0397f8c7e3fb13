// SPDX-License-Identifier: Apache-2.0
#include "train/record/appended_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace weft::train {

AppendedFile::Change AppendedFile::refresh() {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Change::none;
  struct stat now {};
  Change change = Change::none;
  if (::fstat(fd, &now) == 0 && S_ISREG(now.st_mode)) {
    if (inode_ != 0 && (now.st_ino != inode_ || static_cast<uint64_t>(now.st_size) < read_)) {
      read_ = 0;
      unread.clear();
      change = Change::replaced;
    }
    inode_ = now.st_ino;
    std::array<char, 1 << 16> buffer;
    ssize_t got;
    while (unread.size() < kMost && (got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(read_))) > 0) {
      unread.append(buffer.data(), static_cast<size_t>(got));
      read_ += static_cast<uint64_t>(got);
      if (change == Change::none) change = Change::grown;
    }
  }
  ::close(fd);
  return change;
}

}  // namespace weft::train
