// SPDX-License-Identifier: Apache-2.0
#include "train/record/run_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "core/text.h"
#include "dist/group/world.h"
#include "dist/rendezvous/socket.h"
#include "io/disk_work.h"
#include "kernels/error.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{10'000}, kPatienceOfRestart{120'000}, kPause{100};
constexpr int kMostRemovals = 100;  // some file systems say of every file that it has no name

/// The locks that this process has, by their descriptors. A child that is forked drops them: otherwise it would keep
/// the folder after its parent's end.
struct Held {
  std::mutex mutex;
  std::map<int, std::weak_ptr<const RunLock>> locks;
};

Held& held() {
  static Held* const all = [] {
    ::pthread_atfork([] { held().mutex.lock(); }, [] { held().mutex.unlock(); },
                     [] {
                       for (const auto& [fd, lock] : held().locks) ::close(fd);
                       held().locks.clear();
                       held().mutex.unlock();
                     });
    return new Held;  // not destroyed: locks may be static, too
  }();
  return *all;
}

bool same_file(int a, int b) {
  struct stat first {
  }, second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

std::shared_ptr<const RunLock> find_held(int fd) {
  for (const auto& [other, lock] : held().locks)
    if (same_file(fd, other)) return lock.lock();
  return nullptr;
}

/// Releasing a lock removes its file; a process that had opened the file before locks a file without a name.
bool is_removed(int fd, const fs::path& path) {
  struct stat opened {};
  return ::fstat(fd, &opened) != 0 || opened.st_nlink == 0 || ::access(path.c_str(), F_OK) != 0;
}

int open_lock(const fs::path& path) { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666); }

/// Whether the file that is open is the one under this name.
bool has_name(int fd, const fs::path& path) {
  struct stat named {
  }, own{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(fd, &own) == 0 && named.st_dev == own.st_dev &&
         named.st_ino == own.st_ino;
}

void write_holder(int fd) {
  const std::string text = str("process ", ::getpid(), " on ", dist::host_name(), '\n');
  const bool written =
      ::ftruncate(fd, 0) == 0 && ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (written) ::fsync(fd);  // for other machines; on a full disk nobody learns the holder's name
}

std::string holder(int fd) {
  char text[256];
  const ssize_t size = ::pread(fd, text, sizeof text, 0);
  const std::string all(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  const std::string line = all.substr(0, all.find('\n'));
  return line.empty() ? "another run" : printable(line);
}

/// A network file system says ESTALE of a file that its holder has just removed.
bool is_taken(int error) { return error == EAGAIN || error == EACCES || error == EINTR || error == ESTALE; }

bool is_restart() {
  for (const char* name : {"SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"})
    if (const char* count = std::getenv(name); count != nullptr && std::strtol(count, nullptr, 10) > 0) return true;
  return false;
}

}  // namespace

milliseconds run_lock_patience() { return is_restart() ? kPatienceOfRestart : kPatience; }

int lock_whole_file(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &whole) == 0 ? 0 : errno;
}

void warn_of_locks_once(const std::string& text) {
  static std::atomic_flag told = ATOMIC_FLAG_INIT;
  if (!told.test_and_set()) std::cerr << "warning: " + text + "\n" << std::flush;
}

std::shared_ptr<const RunLock> RunLock::hold(const fs::path& folder, const RunLockOptions& options) {
  const fs::path path = fs::absolute(folder) / kFile;
  const auto unlocked = [&](int error) {
    options.warn(str("run folder: ", folder.string(), " cannot be locked ('", dist::error_words(error),
                     "'): nothing keeps a second run from writing into it"));
    return nullptr;
  };
  const DiskWork work("waiting for " + path.string());
  const auto end = std::chrono::steady_clock::now() + options.patience;
  for (int removals = 0;;) {
    dist::Descriptor file(open_lock(path));
    if (!file) return unlocked(errno);
    int error = 0;
    {
      Held& all = held();
      const std::lock_guard guard(all.mutex);
      if (auto own = find_held(file.fd())) return own;
      error = options.lock(file.fd());
      if (error == 0) {
        if (is_removed(file.fd(), path) && ++removals < kMostRemovals) continue;
        write_holder(file.fd());
        const int fd = file.release();
        const std::shared_ptr<const RunLock> lock(new RunLock(path, fd));
        all.locks[fd] = lock;
        return lock;
      }
    }
    if (!is_taken(error)) return unlocked(error);
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    WEFT_CHECK(left.count() > 0, "run folder: ", folder.string(), " is in use by ", holder(file.fd()),
               ", and was for the ", static_cast<double>(options.patience.count()) / 1000,
               " s that this run has waited. End that run, or name another folder");
    std::this_thread::sleep_for(std::min(left, kPause));
  }
}

void RunLock::confirm() const {
  if (has_name(fd_, path_)) return;
  const std::lock_guard guard(held().mutex);
  const dist::Descriptor again(open_lock(path_));
  if (!again) return;  // no file can be made: the checkpoint that follows says why
  const int error = lock_whole_file(again.fd());
  WEFT_CHECK(!is_taken(error), "run folder: the file ", path_.string(), " was deleted, and ", holder(again.fd()),
             " has the folder now. Two runs must not write into one: this one ends");
  if (error == 0 && ::dup3(again.fd(), fd_, O_CLOEXEC) >= 0) write_holder(fd_);
}

RunLock::~RunLock() {
  Held& all = held();
  const std::lock_guard guard(all.mutex);
  if (all.locks.erase(fd_) == 0) return;              // the lock of the process that this one was forked from
  if (has_name(fd_, path_)) ::unlink(path_.c_str());  // not the file of a run that came after a deletion
  ::close(fd_);
}

}  // namespace weft::train
