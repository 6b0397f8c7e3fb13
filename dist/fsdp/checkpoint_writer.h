// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dist/fsdp/sharded_checkpoint.h"
#include "io/checkpoint.h"
#include "kernels/runtime/pinned_memory.h"

namespace weft::dist {

/// Writes sharded checkpoints during training: save() copies this rank's pieces into pinned host memory and returns; a
/// thread then writes them. The ranks of a host write one file into a temporary folder beside the target, each its own
/// range; when all files are on the disk, rank 0 writes the index and renames the folder, which atomically replaces an
/// older one. So a folder of the target's name is always complete. All ranks must see the same file system.
///   CheckpointWriter writer(group);
///   writer.save("runs/a/step_1000", {{"model", sharded_state(fsdp)}, {"optimizer", sharded_state(fsdp, state)}});
class CheckpointWriter {
 public:
  /// `timeout`: how long a rank waits for others. `host`: ranks that give the same name write one file; "": each rank
  /// has its own.
  explicit CheckpointWriter(ProcessGroupPtr group, Milliseconds timeout = Milliseconds{600'000}, std::string host = "");
  /// Waits for the thread; an error that wait() has not thrown is lost. While an exception unwinds the stack, rank 0 no
  /// longer waits for the files of the others, which may never come.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Collective; first waits for the previous save (and throws its error). Errors: no folder to write into, another
  /// folder than rank 0's.
  void save(const std::filesystem::path& folder, std::vector<std::pair<std::string, ShardedState>> parts,
            std::map<std::string, std::string> facts = {});
  /// Also saves the numbers and texts of `notes`, which has no parts. The last `keep` - 1 folders before it stay
  /// (kept_file()). Rank 0 calls `add` at once with the temporary folder, for more files.
  void save(const std::filesystem::path& folder, std::vector<std::pair<std::string, ShardedState>> parts,
            const Checkpoint& notes, int keep, const std::function<void(const std::filesystem::path&)>& add = {});
  /// Waits until the last save is complete on the disk. Collective. Errors (on every rank): the failure of any rank,
  /// with its number.
  void wait();

 private:
  struct Job;
  struct Background;

  ProcessGroupPtr group_;
  Milliseconds timeout_;
  std::string host_;
  kernels::PinnedMemory arena_;  ///< memory of the last snapshot
  std::unique_ptr<Background> background_;
  std::filesystem::path temporary_;  // file of the last save
  bool pending_ = false;
};

}  // namespace weft::dist
