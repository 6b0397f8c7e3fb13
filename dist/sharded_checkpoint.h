// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "dist/sharded_index.h"

namespace weft::dist {

/// A sharded checkpoint on the disk, to be read by any number of ranks, sharded or not, whatever wrote it.
///   const ShardedCheckpoint checkpoint("runs/a/step_1000");
///   ShardedState model = sharded_state(fsdp);
///   checkpoint.load({{"model", &model}});
class ShardedCheckpoint {
 public:
  /// Reads the index. Errors: see read_index().
  explicit ShardedCheckpoint(std::filesystem::path folder);

  /// What the writer noted: epoch, step, …
  const std::map<std::string, std::string>& facts() const { return index_.facts; }
  /// How many ranks wrote it.
  int world_size() const { return static_cast<int>(index_.files.size()); }
  const ShardedIndex& index() const { return index_; }

  /// Fills the pieces (converting dtype and device) and replaces the scalars. Reads each file that holds something
  /// wanted once, one at a time, after checking its CRC-32C. Errors: no such part; names or sizes that do not fit (five
  /// of each kind); elements that no file holds; a rank's file that is missing, damaged or of another checkpoint, each
  /// named. Names and sizes are checked before anything is changed.
  void load(const std::vector<std::pair<std::string, ShardedState*>>& parts) const;

  /// A part in whole, on the CPU, as state_dict() shows it: what one process loads.
  StateDict full(const std::string& part) const;

 private:
  const ShardedIndex::Part& part(const std::string& name) const;
  void check_fit(const std::string& name, const ShardedState& state) const;
  StateDict read_file(int rank) const;

  std::filesystem::path folder_;
  ShardedIndex index_;
};

}  // namespace weft::dist
