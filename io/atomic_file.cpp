// SPDX-License-Identifier: Apache-2.0
#include "io/atomic_file.h"

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "kernels/error.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// A temporary file that is untouched for so long counts as left by a crash.
constexpr std::chrono::minutes kAbandonedAfter{10};

/// `1.5 MiB`: free space of the folder's disk for this user.
std::string free_space(const fs::path& folder) {
  std::error_code ignored;
  auto bytes = static_cast<double>(fs::space(folder, ignored).available);
  const char* unit = "KiB";
  bytes /= 1024;
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", bytes, unit);
  return text;
}

}  // namespace

AtomicFile::AtomicFile(fs::path path, std::string what)
    : path_(std::move(path)), what_(std::move(what)), work_("writing " + path_.string()) {
  std::error_code ignored;
  WEFT_CHECK(path_.has_filename(), what_, ": expected a file name, got '", path_.string(), "'");
  WEFT_CHECK(!fs::is_directory(path_, ignored), what_, ": expected a file, got the folder ", path_.string());
  // The rename would put a file in the place of a pipe, or of /dev/null where this user may.
  const bool device = fs::is_other(path_, ignored) || fs::absolute(folder_of(path_), ignored) == "/dev";
  WEFT_CHECK(!device, what_, ": expected a file, got something else: ", path_.string());
  WEFT_CHECK(fs::is_directory(folder_of(path_), ignored), what_, ": expected an existing folder for ", path_.string(),
             ", got none at ", folder_of(path_).string());
  remove_abandoned();
  Descriptor created = create_temporary(path_, 0644, temporary_);
  if (created.fd < 0) fail_write(errno);
  created_.fd = std::exchange(created.fd, -1);
}

void AtomicFile::remove_abandoned() const {
  const std::string start = "." + path_.filename().string() + ".";
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(path_), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(".tmp")) continue;
    std::string_view middle = std::string_view(name).substr(start.size(), name.size() - start.size() - 4);
    middle.remove_prefix(middle.rfind('.') + 1);  // npos + 1 is 0: earlier versions wrote no number before the process
    pid_t process = 0;
    const auto [end, error] = std::from_chars(middle.data(), middle.data() + middle.size(), process);
    if (error != std::errc() || end != middle.data() + middle.size() || process <= 0) continue;
    // The process may run on another machine that shares the disk; then it continues to write.
    const bool gone = ::kill(process, 0) != 0 && errno == ESRCH;
    const auto age = fs::file_time_type::clock::now() - entry.last_write_time(ignored);
    if (gone && !ignored && age > kAbandonedAfter) fs::remove(entry.path(), ignored);
  }
}

AtomicFile::~AtomicFile() {
  std::error_code ignored;
  if (!committed_) fs::remove(temporary_, ignored);
}

void AtomicFile::commit(int keep) {
  {  // a library may have put another file in place of the one created
    const Descriptor data(::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (data.fd < 0 || ::fsync(data.fd) != 0) fail_write(errno);
  }
  const fs::path older = second_name(keep);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    if (!older.empty()) ::unlink(older.c_str());
    fail_write(error);
  }
  committed_ = true;
  if (!older.empty()) become_newest_kept(older, keep);
  // Some network file systems cannot fsync a folder; the rename itself has succeeded, so that is no error.
  const Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd >= 0) static_cast<void>(::fsync(folder.fd));
}

/// A second name for the file that is about to be replaced. It replaces the previous name only when its own successor
/// is there: at any moment there is a file under `path_`, and another. Without hard links (FAT, some network file
/// systems) the file is moved: a crash right then leaves only the older file.
fs::path AtomicFile::second_name(int keep) const {
  if (keep < 2) return {};
  const std::string name = path_.filename().string(), temporary = temporary_.filename().string();
  const fs::path older = folder_of(path_) / ("." + name + ".old" + temporary.substr(1 + name.size()));
  if (::link(path_.c_str(), older.c_str()) == 0) return older;
  if (errno != ENOENT) become_newest_kept(path_, keep);
  return {};
}

void AtomicFile::become_newest_kept(const fs::path& file, int keep) const {
  for (int age = keep - 1; age > 1; --age) ::rename(kept_file(path_, age - 1).c_str(), kept_file(path_, age).c_str());
  ::rename(file.c_str(), kept_file(path_, 1).c_str());
}

fs::path kept_file(const fs::path& path, int age) {
  if (age == 0) return path;
  return path.parent_path() / str(path.stem().string(), '.', age, path.extension().string());
}

void AtomicFile::fail_write(int error_number) const {
  std::error_code ignored;
  const char* survivor = fs::exists(path_, ignored) ? " The old file is unchanged." : "";
  std::string hint;
  if (error_number == ENOSPC || error_number == EDQUOT)
    hint = " Free some space (" + free_space(folder_of(path_)) + " are left) or write elsewhere.";
  if (error_number == EFBIG) hint = " Raise the limit on file sizes (ulimit -f).";
  fail(what_, ": expected to write ", path_.string(), ", got '", std::strerror(error_number), "'.", survivor, hint);
}

AtomicFile::Writer::Writer(const AtomicFile& file) : file_(file), fd_(::fcntl(file.created_.fd, F_DUPFD_CLOEXEC, 0)) {
  if (fd_ < 0) file.fail_write(errno);
}

AtomicFile::Writer::~Writer() {
  if (fd_ >= 0) ::close(fd_);
}

void AtomicFile::Writer::write(const void* bytes, size_t size) {
  const auto* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(fd_, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) file_.fail_write(errno);
    from += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::Writer::close() {
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) file_.fail_write(errno);  // network file systems report a full disk here
}

void write_atomically(const fs::path& path, std::string_view bytes, const std::string& what) {
  AtomicFile file(path, what);
  AtomicFile::Writer out(file);
  out.write(bytes.data(), bytes.size());
  out.close();
  file.commit();
}

}  // namespace weft
