// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace weft::train {

/// How long a run waits for another one to leave its folder: 10 s, for an earlier attempt of its own may be just
/// ending. 120 s in an attempt that is not the first one (SLURM_RESTART_COUNT, TORCHELASTIC_RESTART_COUNT): of a
/// machine that broke down, network file systems keep the locks until its lease is over (Linux's NFS server: 90 s).
std::chrono::milliseconds run_lock_patience();

/// Locks the whole file against every other open file description, without waiting (fcntl, F_OFD_SETLK; byte ranges,
/// unlike flock, hold between the machines of all file systems that lock at all). 0, or the error number.
int lock_whole_file(int fd);

/// One line on stderr in the life of a process, whatever comes later.
void warn_of_locks_once(const std::string& text);

/// A lock's questions to its surroundings.
struct RunLockOptions {
  std::chrono::milliseconds patience = run_lock_patience();
  std::function<int(int fd)> lock = lock_whole_file;
  std::function<void(const std::string&)> warn = warn_of_locks_once;  ///< hears that a folder cannot be locked
};

/// Keeps a folder for this process: while the lock lives, no other process gets a lock on the folder. The kernel
/// releases the lock at any end of the process. Started programs and forked children do not inherit the lock.
class RunLock {
 public:
  static constexpr const char* kFile =
      ".run.lock";  ///< names the holder; there as long as it is held, or left by a kill

  /// Returns the same lock if this process has it already; null if the file system has no locks, and `warn` then gets
  /// the reason. Errors: another process still has it when the patience is over; the text names process and host.
  static std::shared_ptr<const RunLock> hold(const std::filesystem::path& folder, const RunLockOptions& options = {});
  ~RunLock();

  /// Confirms that the lock's file still has its name. A deleted file is made and locked again.
  /// Errors: another process was faster, and has the folder now.
  void confirm() const;
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  RunLock(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_;
};

}  // namespace weft::train
