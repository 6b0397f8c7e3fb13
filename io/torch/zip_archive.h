// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.h"

namespace weft {

/// A zip archive, as PyTorch and NumPy write them, zip64 included; read by libzip. Opening reads the directory only.
/// Errors: `KIND: FILE: …`: no zip archive, damaged, an entry that is compressed (read()) or encrypted, entries whose
/// sum is larger than the file, Weft was built without libzip.
class ZipArchive {
 public:
  struct Entry {
    std::string name;
    uint64_t size = 0;
    bool is_stored = true;     ///< neither compressed nor encrypted; read() reads no others
    bool is_deflated = false;  ///< compressed by zlib's method, not encrypted; unpack() reads these, too
  };

  explicit ZipArchive(const std::filesystem::path& path, const std::string& kind = "pytorch");
  ~ZipArchive();
  ZipArchive(ZipArchive&&) noexcept;

  const std::vector<Entry>& entries() const;
  /// The number of this entry, or -1.
  int64_t find(std::string_view name) const;
  /// Reads the whole entry, `entries()[index].size` bytes, into the caller's memory. Errors: a wrong checksum, the file
  /// ends too early. Not thread-safe.
  void read(size_t index, void* to) const { read(index, to, 0, entries()[index].size); }
  /// Reads `bytes` bytes of the entry from `begin` on; the checksum is that of the whole entry alone.
  void read(size_t index, void* to, uint64_t begin, uint64_t bytes) const;
  /// The whole entry, stored or deflated. Errors: as read().
  std::vector<uint8_t> unpack(size_t index) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Writes such an archive into an AtomicFile's temporary file; data begins at multiples of 64 bytes, as in PyTorch's.
class ZipWriter {
 public:
  /// Returns an entry's bytes when it is written; they must live as long as the pointer.
  using Load = std::function<std::shared_ptr<const void>()>;

  explicit ZipWriter(const AtomicFile& file);
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  void add(const std::string& name, uint64_t size, Load load);
  /// Writes all entries, one after the other. Errors: AtomicFile::fail_write's.
  void close();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Whether zip archives can be read and written at all (Weft was built with libzip).
bool have_zip();

}  // namespace weft
