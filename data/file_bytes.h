// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft::data {

/// The whole file. Errors: not there, not a file, unreadable.
std::vector<uint8_t> read_file(const std::filesystem::path& path);
/// Writes beside and renames, so that a reader never meets half a file. Errors: the system's text.
void write_file(const std::filesystem::path& path, const std::vector<uint8_t>& bytes);
/// Lines of a text file without line ends and without trailing empty lines.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// Unpacks gzip (one or several members). Errors name `path`: not gzip, corrupt, cut short; without zlib: how to get
/// it.
std::vector<uint8_t> gunzip(const std::vector<uint8_t>& packed, const std::string& path);

}  // namespace weft::data
