// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/file_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <thread>

#include "core/text.h"
#include "dist/rendezvous/handshake.h"
#include "dist/rendezvous/socket.h"
#include "io/file_reader.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFileName = 200;  // file systems allow 255

void check_key(const std::string& key) {
  WEFT_CHECK(!key.empty() && key.size() <= Store::kMaxKey, "store: expected a key of 1 to ", Store::kMaxKey,
             " bytes, got ", key.size());
}

std::optional<std::string> read_value(const fs::path& path) {
  std::string why;
  errno = 0;
  const weft::Descriptor file = open_regular(path, why);  // opening a pipe would block
  if (file.fd < 0) {
    WEFT_CHECK(errno == ENOENT, "store: cannot read ", printable(path.string()), ": ", why);
    return std::nullopt;
  }
  std::string value;
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(file.fd, buffer, sizeof buffer);
    WEFT_CHECK(got >= 0, "store: cannot read ", printable(path.string()), ": ", error_words(errno));
    if (got == 0) return value;
    value.append(buffer, static_cast<size_t>(got));
    WEFT_CHECK(value.size() <= Store::kMaxValue, "store: ", printable(path.string()), " holds more than ",
               Store::kMaxValue, " bytes");
  }
}

/// A lock for one thread of a process at a time; works over NFS too.
class Lock {
 public:
  explicit Lock(const fs::path& folder)
      : file_(::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    int status = file_ ? -1 : -2;
    while (status == -1) {
      status = ::fcntl(file_.fd(), F_OFD_SETLKW, &whole);
      if (status == -1 && errno != EINTR) status = -2;
    }
    WEFT_CHECK(status == 0, "store: cannot lock ", printable((folder / "lock").string()), ": ", error_words(errno));
  }

 private:
  Descriptor file_;
};

}  // namespace

FileStore::FileStore(fs::path folder) : folder_(std::move(folder)) {
  const int status = ::access(folder_.c_str(), R_OK | W_OK | X_OK);
  WEFT_CHECK(status == 0, "store: expected a folder that all ranks can write, got '", printable(folder_.string()),
             "': ", error_words(errno));
  WEFT_CHECK(fs::is_directory(folder_), "store: expected a folder that all ranks can write, got '",
             printable(folder_.string()), "': it is a file");
}

/// Letters and digits stay, other bytes become `%2f`. Keys that are too long for one name become folders, whose names
/// end in `+`; names of files end in `=`.
fs::path FileStore::file_of(const std::string& key) const {
  check_key(key);
  constexpr char kDigits[] = "0123456789abcdef";
  fs::path path = folder_;
  std::string name;
  for (const char c : key) {
    if (name.size() > kMaxFileName) {
      path /= name + "+";
      name.clear();
    }
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (plain)
      name += c;
    else
      name += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return path / (name + "=");
}

void FileStore::set(const std::string& key, const std::string& value) {
  const fs::path path = file_of(key);
  WEFT_CHECK(value.size() <= kMaxValue, "store: expected a value of at most ", kMaxValue, " bytes for '",
             printable(key), "', got ", value.size());
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  fs::path temporary;
  const weft::Descriptor file = create_temporary(path, 0600, temporary);
  bool written = file.fd >= 0;
  for (size_t done = 0; written && done < value.size();) {
    const ssize_t count = ::write(file.fd, value.data() + done, value.size() - done);
    written = count > 0 || (count < 0 && errno == EINTR);
    if (count > 0) done += static_cast<size_t>(count);
  }
  if (written && ::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int number = errno;
  ::unlink(temporary.c_str());
  fail("store: cannot write ", printable(path.string()), ": ", error_words(number));
}

std::optional<std::string> FileStore::find(const std::string& key, Milliseconds timeout) {
  const fs::path path = file_of(key);
  const TimePoint deadline = Clock::now() + timeout;
  Milliseconds pause(5);
  while (true) {
    if (std::optional<std::string> value = read_value(path)) return value;
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || !why_ended().empty()) return std::nullopt;
    std::this_thread::sleep_for(std::min(pause, left));
    pause = std::min(2 * pause, Milliseconds(200));
  }
}

void FileStore::end_waits(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (why_ended_.empty()) why_ended_ = why;
}

std::string FileStore::why_ended() const {
  const std::lock_guard lock(mutex_);
  return why_ended_;
}

bool FileStore::has(const std::string& key) { return read_value(file_of(key)).has_value(); }

int64_t FileStore::add(const std::string& key, int64_t amount) {
  const fs::path path = file_of(key);
  const Lock lock(folder_);
  const std::string text = read_value(path).value_or("0");
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  WEFT_CHECK(error == std::errc{} && end == text.data() + text.size(), "store: cannot add to '", printable(key),
             "': its value is no number");
  WEFT_CHECK(!__builtin_add_overflow(value, amount, &value), "store: cannot add to '", printable(key),
             "': the sum is too large");
  set(key, std::to_string(value));
  return value;
}

void FileStore::remove(const std::string& key) {
  const fs::path path = file_of(key);
  WEFT_CHECK(::unlink(path.c_str()) == 0 || errno == ENOENT, "store: cannot remove ", printable(path.string()), ": ",
             error_words(errno));
}

std::string FileStore::secret() const { return read_cookie(folder_ / "cookie"); }

}  // namespace weft::dist
