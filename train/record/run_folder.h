// SPDX-License-Identifier: Apache-2.0
#pragma once
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
#include "train/record/run_lock.h"

namespace weft::train {

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
  /// save_checkpoint() to `name`; then the folder of a sharded checkpoint in its place goes.
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

/// Calls `function` on rank 0 and returns its result on all ranks; its error is theirs, too. All ranks call it.
std::string on_first(const dist::World& ranks, const std::string& what, const std::function<std::string()>& function);

/// The run's folder on rank 0, null on the others, which wait until the folder is open: then no other run changes its
/// files. `fresh`: files of a run that has left neither a checkpoint nor weights nor a summary go; left out: the run goes
/// on with what is there. All ranks call it. Errors: rank 0's, on all of them; another run has left one of these, and is
/// not to be overwritten.
std::unique_ptr<RunFolder> open_run_folder(const std::filesystem::path& path, const dist::World& ranks,
                                           const std::optional<NewRun>& fresh = {});

}  // namespace weft::train
