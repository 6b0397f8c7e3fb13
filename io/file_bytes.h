// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft {

/// The whole file. Errors: missing, not a file, unreadable.
std::vector<uint8_t> read_file(const std::filesystem::path& path);
/// Writes a temporary file and renames it, so that a reader never sees half a file. Errors: the system's message.
void write_file(const std::filesystem::path& path, const std::vector<uint8_t>& bytes);
/// Lines of a text file without line ends and without trailing empty lines.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// Unpacks gzip (one or several members). Errors name `path`: not gzip, corrupt, truncated; without zlib: how to get
/// it.
std::vector<uint8_t> gunzip(const std::vector<uint8_t>& packed, const std::string& path);

}  // namespace weft
