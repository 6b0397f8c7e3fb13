// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>

#include "io/atomic_file.h"

namespace weft {

/// A seal is the last 20 bytes of a file: "WEFTSEAL", the length of the content before it (u64), and the CRC-32C of
/// content, name and length (u32), little-endian. It is checked before a library parses the content, since such
/// libraries may crash on damaged files. It detects damage, not forgery.
inline constexpr uint64_t kSealBytes = 20;

/// Appends the seal to the temporary file. Errors: those of AtomicFile::fail_write.
void seal(const AtomicFile& file);

enum class SealState : uint8_t { whole, missing, broken };

/// Reads the whole file. `missing`: it does not end with a seal (truncated, or never sealed). `broken`: the content has
/// another length or checksum, or it cannot be read.
SealState check_seal(const std::filesystem::path& path);

}  // namespace weft
