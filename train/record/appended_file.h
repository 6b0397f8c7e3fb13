// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace weft::train {

/// A file that another program appends to, read piece by piece as it grows.
class AppendedFile {
 public:
  explicit AppendedFile(std::filesystem::path path) : path_(std::move(path)) {}

  enum class Change { none, grown, replaced };
  /// Reads what is new into `unread`. `replaced`: the file is new or shorter than before (a run was resumed);
  /// `unread` then begins at its start. A file that is not there, or cannot be read, has not changed. Reads nothing
  /// while `unread` holds kMost bytes: the user takes of them and asks again, until nothing has changed; a file may be
  /// one line without an end.
  Change refresh();
  static constexpr size_t kMost = size_t{64} << 20;

  /// Text that was read and not yet used: the user removes whole lines or records from its front.
  std::string unread;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  uint64_t read_ = 0;
  ino_t inode_ = 0;
};

}  // namespace weft::train
