// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "io/torch/torch_object.h"

namespace weft::nersc {

/// The content of `checkpoints/ckpt.tar`. PyTorch's torch.load opens the file, and PyTorch's files with the same five
/// names are read.
struct Checkpoint {
  int64_t iters = 0;      ///< training steps made
  int64_t epoch = 0;      ///< the last one done, from 0
  StateDict model_state;  ///< without `module.`
  TorchObject optimizer_state_dict;
  TorchObject scheduler_state_dict;
  /// More names, which PyTorch's trainer passes over: a resumed run remembers the best loss, and reports its changes.
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
/// Reads the last checkpoint, or if damaged its predecessor (`ckpt.1.tar`), and `note` then reports so.
Checkpoint read_last_checkpoint(const std::filesystem::path& path, std::string& note);

}  // namespace weft::nersc
