// SPDX-License-Identifier: Apache-2.0
#include "io/seal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "io/crc32c.h"
#include "io/file_reader.h"

namespace weft {
namespace {

static_assert(std::endian::native == std::endian::little, "a seal is little-endian and copied as it is");

constexpr char kName[] = "WEFTSEAL";
constexpr size_t kNameBytes = 8, kHeadBytes = 16;
using Seal = std::array<char, kSealBytes>;

/// Reads all of `bytes` at `offset`; false at the end of the file or after an error (in errno).
bool read_at(int fd, void* to, size_t bytes, uint64_t offset) {
  auto* out = static_cast<char*>(to);
  errno = 0;
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

/// The expected seal of `length` bytes of content; false if they cannot be read.
bool make_seal(int fd, uint64_t length, Seal& seal) {
  std::vector<char> chunk(std::min<uint64_t>(length, uint64_t{1} << 20));
  uint32_t crc = 0;
  for (uint64_t done = 0; done < length;) {
    const size_t bytes = std::min<uint64_t>(chunk.size(), length - done);
    if (!read_at(fd, chunk.data(), bytes, done)) return false;
    crc = crc32c(chunk.data(), bytes, crc);
    done += bytes;
  }
  std::memcpy(seal.data(), kName, kNameBytes);
  std::memcpy(seal.data() + kNameBytes, &length, sizeof length);
  crc = crc32c(seal.data(), kHeadBytes, crc);
  std::memcpy(seal.data() + kHeadBytes, &crc, sizeof crc);
  return true;
}

}  // namespace

void seal(const AtomicFile& file) {
  const Descriptor opened{::open(file.temporary().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
  struct stat facts {};
  if (opened.fd < 0 || ::fstat(opened.fd, &facts) != 0) file.fail_write(errno);
  const auto length = static_cast<uint64_t>(facts.st_size);
  Seal seal;
  if (!make_seal(opened.fd, length, seal)) file.fail_write(errno != 0 ? errno : EIO);
  for (size_t done = 0; done < seal.size();) {
    const ssize_t wrote =
        ::pwrite(opened.fd, seal.data() + done, seal.size() - done, static_cast<off_t>(length + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) file.fail_write(errno);
    done += static_cast<size_t>(wrote);
  }
}

SealState check_seal(const std::filesystem::path& path) {
  std::string ignored;
  const Descriptor opened = open_regular(path, ignored);
  struct stat facts {};
  if (opened.fd < 0 || ::fstat(opened.fd, &facts) != 0) return SealState::broken;
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (size < kSealBytes) return SealState::missing;
  Seal found, expected;
  if (!read_at(opened.fd, found.data(), found.size(), size - kSealBytes)) return SealState::broken;
  if (std::memcmp(found.data(), kName, kNameBytes) != 0) return SealState::missing;
  if (!make_seal(opened.fd, size - kSealBytes, expected)) return SealState::broken;
  return found == expected ? SealState::whole : SealState::broken;
}

}  // namespace weft
