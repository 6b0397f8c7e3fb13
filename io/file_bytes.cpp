// SPDX-License-Identifier: Apache-2.0
#include "io/file_bytes.h"

#include "io/atomic_file.h"
#include "io/file_reader.h"

namespace weft {
namespace {

template <class Bytes>
Bytes whole(const std::filesystem::path& path, const std::string& what, uint64_t most) {
  const FileReader file(path, what);
  if (file.size() > most) file.bad("expected at most ", most, " bytes, got ", file.size());
  Bytes bytes(file.size(), 0);
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

std::vector<uint8_t> read_file(const std::filesystem::path& path, const std::string& what, uint64_t most) {
  return whole<std::vector<uint8_t>>(path, what, most);
}

std::string read_text(const std::filesystem::path& path, const std::string& what, uint64_t most) {
  return whole<std::string>(path, what, most);
}

void write_file(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  write_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "data");
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = read_file(path);
  std::vector<std::string> lines;
  std::string line;
  for (const uint8_t byte : bytes) {
    if (byte == '\n')
      lines.push_back(std::move(line)), line.clear();
    else if (byte != '\r')
      line.push_back(static_cast<char>(byte));
  }
  lines.push_back(std::move(line));
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace weft
