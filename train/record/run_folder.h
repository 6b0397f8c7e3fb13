// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dist/group/world.h"
#include "io/checkpoint.h"

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

/// One entry of summary.json.
using SummaryValue = std::variant<bool, int64_t, double, std::string>;
/// In the order in which they are written. Numbers that are not finite become null.
using Summary = std::vector<std::pair<std::string, SummaryValue>>;

/// The folder that holds everything of one run: config.toml, metrics.jsonl, TensorBoard event files, checkpoints,
/// summary.json. While this object or a copy lives, no other process can have the folder (RunLock).
class RunFolder {
 public:
  /// Creates the folder (and its parents), or opens it. Errors: the folder cannot be created or written, or another run
  /// has the folder.
  explicit RunFolder(std::filesystem::path path, const RunLockOptions& lock = {});

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(std::string_view name) const { return path_ / name; }

  std::filesystem::path metrics() const { return file("metrics.jsonl"); }
  static constexpr const char* kLastCheckpoint = "checkpoint_last.safetensors";
  static constexpr const char* kBestCheckpoint = "checkpoint_best.safetensors";
  std::filesystem::path last_checkpoint() const { return file(kLastCheckpoint); }
  std::filesystem::path best_checkpoint() const { return file(kBestCheckpoint); }
  /// save_checkpoint() to `name`; then the `.h5` file of an earlier version that find_checkpoint() would take in its
  /// place goes.
  /// `keep`: that many of the last ones stay. Errors: those of confirm().
  void save(const std::string& name, const Checkpoint& checkpoint, int keep = 1) const;
  /// To be called ahead of each checkpoint: RunLock::confirm().
  void confirm() const {
    if (lock_) lock_->confirm();
  }

  /// Both replace the old file atomically.
  void write_config(std::string_view toml) const;
  void write_summary(const Summary& summary) const;
  /// A run that goes on has none until its end: what is there agrees with the checkpoints.
  void remove_summary() const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const RunLock> lock_;
};

/// A new run's action on a folder that holds another run.
struct NewRun {
  bool overwrite = false;  ///< --overwrite: the other one's files go; else it is an error
  std::string flags = {};  ///< the program's advice: `--resume auto continues it, --out names another folder`
  std::vector<std::string> own_names = {};  ///< files of this program beyond the files of all programs
};

/// Makes room for a new run. Files of a run that has left neither a checkpoint nor weights nor a summary go. Errors:
/// another run has left one of these, and is not to be overwritten.
void begin_new_run(const RunFolder& folder, const NewRun& how);

/// Calls `function` on rank 0 and returns its result on all ranks; its error is theirs, too. All ranks call it.
std::string on_first(const dist::World& ranks, const std::string& what, const std::function<std::string()>& function);

/// The run's folder on rank 0, null on the others, which wait until the folder is open: then no other run changes its
/// files. `fresh`: begin_new_run(); left out: the run goes on with what is there. All ranks call it. Errors: rank
/// 0's, on all of them.
std::unique_ptr<RunFolder> open_run_folder(const std::filesystem::path& path, const dist::World& ranks,
                                           const std::optional<NewRun>& fresh = {});

}  // namespace weft::train
