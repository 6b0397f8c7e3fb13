// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft {

/// The whole file. Errors: missing, no regular file (io/descriptor.h), unreadable, more than `most` bytes; `what`
/// begins the text.
std::vector<uint8_t> read_file(const std::filesystem::path& path, const std::string& what = "data",
                               uint64_t most = UINT64_MAX);
/// The same as a string: JSON, YAML, vocabularies.
std::string read_text(const std::filesystem::path& path, const std::string& what, uint64_t most = UINT64_MAX);
/// Replaces the file as AtomicFile does. Errors: the system's message.
void write_file(const std::filesystem::path& path, const std::vector<uint8_t>& bytes);
/// Lines of a text file without line ends and without trailing empty lines.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// Unpacks gzip (one or several members), `most` bytes of it: one byte may stand for a thousand, so the caller says how
/// many it can use. Errors name `path`: not gzip, corrupt, truncated; without zlib: how to get it.
std::vector<uint8_t> gunzip(const std::vector<uint8_t>& packed, const std::string& path, uint64_t most = UINT64_MAX);

}  // namespace weft
