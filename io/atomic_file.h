// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace weft {

/// Replaces a file atomically: write to `temporary()`, then `commit()`. Until then readers see the old file, and a
/// crash, a full disk or an exception leaves it as it was (the destructor removes the temporary file; a later write
/// removes what a crash left).
class AtomicFile {
 public:
  /// `what` begins error messages, as in `checkpoint: …`. Errors: the folder does not exist, the path is a folder.
  AtomicFile(std::filesystem::path path, std::string what);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// `.NAME.PID.tmp` in the same folder: the caller creates and writes it.
  const std::filesystem::path& temporary() const { return temporary_; }

  /// Forces the data to the disk, renames the temporary file onto the path, forces the folder to the disk.
  void commit();

  /// Creates the temporary file and writes it piece by piece; every error is fail_write's.
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

  std::filesystem::path path_, temporary_;
  std::string what_;
  bool committed_ = false;
};

/// Replaces the file's content by `bytes`, as AtomicFile does.
void write_atomically(const std::filesystem::path& path, std::string_view bytes, const std::string& what);

}  // namespace weft
