// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "io/torch/torch_object.h"

namespace weft::nersc {

/// What `checkpoints/ckpt.tar` holds. PyTorch's torch.load opens it, and what PyTorch saved under the same five names
/// is read.
struct Checkpoint {
  int64_t iters = 0;      ///< training steps made
  int64_t epoch = 0;      ///< the last one done, from 0
  StateDict model_state;  ///< without `module.`
  TorchObject optimizer_state_dict;
  TorchObject scheduler_state_dict;
  /// More names, which PyTorch's trainer passes over: a resumed run remembers what was best, and says what it changes.
  double best_val_loss = std::numeric_limits<double>::infinity();
  int64_t best_epoch = 0;
  std::string settings = {};  ///< yaml(Config) of the run that wrote it; empty: another program wrote it
};

/// `ckpt.tar` as `ckpt_best.tar`.
std::filesystem::path best_of(const std::filesystem::path& path);

/// `prefixed`: names of the model get `module.` in front, as PyTorch's DistributedDataParallel has it. `keep`:
/// AtomicFile::commit.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint, bool prefixed, int keep = 1);

/// With and without `module.`. Errors: those of read_torch; a name that is missing.
Checkpoint read_checkpoint(const std::filesystem::path& path);
/// The same, or where it is damaged the one before it (`ckpt.1.tar`), which `note` then says.
Checkpoint read_last_checkpoint(const std::filesystem::path& path, std::string& note);

}  // namespace weft::nersc
