// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/tune_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "kernels/error.h"

namespace weft::kernels::vendor {
namespace {

constexpr const char* kFormat = "weft-tune-1";
constexpr int64_t kLargestFile = int64_t{64} << 20;  // some 300,000 lines: larger ones are not ours

class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

std::string checksum(const std::string& text) {
  uint32_t hash = 0x811c9dc5u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(hash));
  return digits;
}

/// A field of a line.
std::string plain(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  return text;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t')
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

}  // namespace

std::string TuneCache::default_path() {
  if (const char* const named = std::getenv("WEFT_TUNE_CACHE")) return named;
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/weft/tune.tsv";  // relative ones do not count, says XDG
  const char* const home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/weft/tune.tsv" : "";
}

void TuneCache::warn(const std::string& what) {
  if (std::exchange(warned_, true)) return;
  std::fprintf(stderr, "weft: tune cache %s: %s\n", path_.c_str(), what.c_str());
}

void TuneCache::take(const std::string& line) {
  if (line.empty()) return;
  const auto fields = fields_of(line);
  const size_t end = line.rfind('\t');
  if (fields.size() != 6 || fields[0] != kFormat || fields[5] != checksum(line.substr(0, end))) {
    bad_line_ = true;
    return;
  }
  winners_.emplace(std::pair(fields[1], fields[2]), fields[3]);
}

void TuneCache::read_on() {
  const File file(path_, O_RDONLY | O_NONBLOCK);  // a pipe must not make us wait
  if (!file.is_open()) {
    if (errno != ENOENT && errno != ENOTDIR) warn(str("cannot be read: ", std::strerror(errno)));
    return;
  }
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) return warn("is no regular file");
  if (status.st_size < read_) read_ = 0;  // another process has replaced it
  if (status.st_size == read_) return;
  if (status.st_size > kLargestFile) return warn("is larger than 64 MiB and was not read. Remove it");
  std::string text(static_cast<size_t>(status.st_size - read_), '\0');
  size_t got = 0;
  while (got < text.size()) {
    const ssize_t bytes =
        ::pread(file.descriptor(), text.data() + got, text.size() - got, read_ + static_cast<int64_t>(got));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) warn(str("cannot be read: ", std::strerror(errno)));
    if (bytes <= 0) break;
    got += static_cast<size_t>(bytes);
  }
  text.resize(got);
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    take(text.substr(begin, end - begin));
  read_ += static_cast<int64_t>(begin);  // a line without its end is still being written
  if (bad_line_) warn("has lines that are torn, altered or from another version; they are ignored");
}

std::optional<std::string> TuneCache::find(const std::string& machine, const std::string& problem) {
  if (path_.empty()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const std::pair key(plain(machine), plain(problem));
  auto found = winners_.find(key);
  if (found == winners_.end()) {
    read_on();
    found = winners_.find(key);
  }
  return found == winners_.end() ? std::nullopt : std::optional(found->second);
}

void TuneCache::add(const std::string& machine, const std::string& problem, const std::string& winner,
                    const std::string& times) {
  if (path_.empty()) return;
  const std::lock_guard lock(mutex_);
  std::string line = str(kFormat, '\t', plain(machine), '\t', plain(problem), '\t', plain(winner), '\t', plain(times));
  line += '\t' + checksum(line);
  // The empty line before ends a possible half line of a process that died while writing.
  line = '\n' + line + '\n';
  std::error_code ignored;  // the open below says what is wrong
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const File file(path_, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0644);
  if (!file.is_open()) return warn(str("cannot be written: ", std::strerror(errno)));
  ssize_t written;
  do written = ::write(file.descriptor(), line.data(), line.size());  // one call: lines of other processes stay whole
  while (written < 0 && errno == EINTR);
  if (written < 0)
    warn(str("cannot be written: ", std::strerror(errno)));
  else if (written < static_cast<ssize_t>(line.size()))
    warn("cannot be written: the disk is full");
}

}  // namespace weft::kernels::vendor
