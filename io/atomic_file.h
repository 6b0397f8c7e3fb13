// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/disk_work.h"
#include "io/file_reader.h"

namespace weft {

/// Replaces a file atomically: write to `temporary()`, then `commit()`. Until then readers see the old file, and a
/// crash, a full disk or an exception does not change the old file. The destructor removes the temporary file; a later
/// write removes a crash's rest.
class AtomicFile {
 public:
  /// Creates the temporary file, empty. `what` begins error messages, as in `checkpoint: …`. Errors: the folder does
  /// not exist or cannot be written, the path is a folder.
  AtomicFile(std::filesystem::path path, std::string what);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// create_temporary()'s file in the same folder, for libraries that open what they write.
  const std::filesystem::path& temporary() const { return temporary_; }

  /// Forces the data to the disk, renames the temporary file onto the path, forces the folder to the disk. The last
  /// `keep` - 1 replaced files stay, see kept_file().
  void commit(int keep = 1);

  /// Writes the temporary file piece by piece; every error is fail_write's.
  class Writer {
   public:
    explicit Writer(const AtomicFile& file);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    void write(const void* bytes, size_t size);
    void close();

   private:
    const AtomicFile& file_;
    int fd_ = -1;
  };

  /// Throws `what: expected to write PATH, got 'No space left on device'. …`, saying whether an old file survives.
  [[noreturn]] void fail_write(int error_number) const;

 private:
  /// Removes temporary files that crashed writers of this path left: their process has ended, and the file is untouched
  /// for ten minutes.
  void remove_abandoned() const;

  std::filesystem::path second_name(int keep) const;
  void become_newest_kept(const std::filesystem::path& file, int keep) const;

  std::filesystem::path path_, temporary_;
  std::string what_;
  const DiskWork work_;
  Descriptor created_{-1};  // the temporary file
  bool committed_ = false;
};

/// The file before its last `age` replacements, if they kept it: `checkpoint_last.1.safetensors`.
std::filesystem::path kept_file(const std::filesystem::path& path, int age);

/// Replaces the file's content by `bytes`, as AtomicFile does.
void write_atomically(const std::filesystem::path& path, std::string_view bytes, const std::string& what);

}  // namespace weft
