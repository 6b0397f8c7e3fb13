// SPDX-License-Identifier: Apache-2.0
#include "io/file_reader.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "io/atomic_file.h"

namespace weft {

Descriptor open_regular(const std::filesystem::path& path, std::string& why) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.fd < 0) {
    why = std::string("expected to open it, got '") + std::strerror(errno) + "'";
    return file;
  }
  struct stat facts {};
  if (::fstat(file.fd, &facts) == 0 && S_ISREG(facts.st_mode)) return file;
  why = S_ISDIR(facts.st_mode) ? "expected a file, got a folder" : "expected a file, got something else";
  return Descriptor(-1);
}

Descriptor create_temporary(const std::filesystem::path& path, mode_t mode, std::filesystem::path& temporary) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    uint32_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) break;
    char end[64];
    std::snprintf(end, sizeof end, ".%08x.%ld.tmp", number, static_cast<long>(::getpid()));
    temporary = path.parent_path() / ("." + path.filename().string() + end);
    Descriptor file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.fd >= 0 || errno != EEXIST) return file;
  }
  return Descriptor(-1);
}

FileReader::FileReader(const std::filesystem::path& path, std::string what)
    : path_(path.string()), what_(std::move(what)), file_(-1) {
  std::string why;
  Descriptor opened = open_regular(path, why);
  struct stat facts {};
  if (opened.fd < 0) bad(why);
  if (::fstat(opened.fd, &facts) != 0) bad("expected its size, got '", std::strerror(errno), "'");
  size_ = static_cast<uint64_t>(facts.st_size);
  file_.fd = std::exchange(opened.fd, -1);
  refuse_pointer();
}

/// Git without its extension LFS leaves a short text in the place of a large file (git-lfs, docs/spec.md). No program
/// can use such a pointer.
void FileReader::refuse_pointer() const {
  constexpr uint64_t kLongest = 1024;
  constexpr std::string_view kStart = "version https://git-lfs.github.com/spec/";
  if (size_ < kStart.size() || size_ >= kLongest) return;
  std::string text(size_, '\0');
  read(0, text.data(), kStart.size());
  if (!text.starts_with(kStart)) return;
  read(0, text.data(), text.size());
  const size_t number = text.find("\nsize "), end = text.find('\n', number + 1);
  const std::string bytes = number == std::string::npos ? "" : text.substr(number + 6, end - number - 6) + " bytes of ";
  bad("it is a Git LFS pointer, not the ", bytes, "data that it stands for. Fetch them with git lfs pull, or download ",
      "the file itself");
}

void FileReader::read(uint64_t offset, void* to, uint64_t bytes) const {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(file_.fd, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      bad("expected to read ", bytes, " bytes at ", offset, ", got '", got ? std::strerror(errno) : "end of file", "'");
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
}

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
  if (lines[0].starts_with("\xEF\xBB\xBF")) lines[0].erase(0, 3);  // a byte order mark
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace weft
