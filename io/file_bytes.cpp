// SPDX-License-Identifier: Apache-2.0
#include "io/file_bytes.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "kernels/error.h"

namespace weft {

std::vector<uint8_t> read_file(const std::filesystem::path& path) {
  std::error_code problem;
  const bool directory = std::filesystem::is_directory(path, problem);
  WEFT_CHECK(!directory, "data: expected a file, got the folder ", path.string());
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  WEFT_CHECK(in, "data: cannot open ", path.string(), ": ", std::strerror(errno));
  const uintmax_t size = std::filesystem::file_size(path, problem);
  WEFT_CHECK(!problem, "data: cannot read ", path.string(), ": ", problem.message());
  std::vector<uint8_t> bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  WEFT_CHECK(static_cast<uintmax_t>(in.gcount()) == size, "data: cannot read ", path.string(), ": got ", in.gcount(),
             " of ", size, " bytes");
  return bytes;
}

void write_file(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::filesystem::path beside = path;
  beside += str(".", ::getpid(), ".part");
  errno = 0;
  std::ofstream out(beside, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code problem;
  if (!out) {
    const std::string reason = std::strerror(errno);
    std::filesystem::remove(beside, problem);
    fail("data: cannot write ", path.string(), ": ", reason);
  }
  std::filesystem::rename(beside, path, problem);
  WEFT_CHECK(!problem, "data: cannot write ", path.string(), ": ", problem.message());
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
