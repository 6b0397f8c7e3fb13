// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dist/ddp/sharded_state.h"
#include "dist/fsdp/fsdp.h"
#include "io/checkpoint_reader.h"

namespace weft::dist {

/// The state of a sharded model: its parameters' parts, buffers and counters. Gathers nothing.
ShardedState sharded_state(FSDP& fsdp);
/// From the state_dict() of an optimizer over fsdp.parameters(), whose memory the pieces share. Errors: another
/// optimizer's state.
ShardedState sharded_state(FSDP& fsdp, const StateDict& optimizer);

/// The state of a model that every rank holds whole (DDP, or one process): rank 0 saves it.
ShardedState sharded_state(nn::Module& model, int rank = 0);
/// From its optimizer's state_dict().
ShardedState sharded_state(const StateDict& optimizer, int rank = 0);

/// A checkpoint on the disk, to be read by any number of ranks, sharded or not, whatever wrote it: CheckpointWriter, or
/// save_checkpoint() of a model that was whole.
///   const ShardedCheckpoint checkpoint("runs/a/step_1000");
///   ShardedState model = sharded_state(fsdp);
///   checkpoint.load({{"model", &model}});
class ShardedCheckpoint {
 public:
  /// Reads the index. Errors: CheckpointReader's.
  explicit ShardedCheckpoint(const std::filesystem::path& path,
                             CheckpointReader::Seal seal = CheckpointReader::Seal::at_once)
      : reader_(path, seal) {}

  /// The writer's notes: epoch, step, …
  const std::map<std::string, std::string>& facts() const { return index().texts; }
  const CheckpointIndex& index() const { return reader_.index(); }
  /// Bytes of files that all load() so far have read.
  uint64_t bytes_read() const { return reader_.bytes_read(); }

  /// Fills the pieces (converting dtype and device) and replaces the scalars. Reads the blocks with requested
  /// elements, after checking their CRC-32C. Errors: no such part; names or sizes that do not fit (five of
  /// each kind); elements that no file holds; a rank's file that is missing, damaged or of another checkpoint, each
  /// named. Names and sizes are checked before anything is changed.
  void load(const std::vector<std::pair<std::string, ShardedState*>>& parts) const;

  /// A part in whole, on the CPU, as state_dict() shows it: the form that one process loads.
  StateDict full(const std::string& part) const { return reader_.states({part})[0].second; }

 private:
  void check_fit(const std::string& name, const ShardedState& state) const;

  CheckpointReader reader_;
};

}  // namespace weft::dist
