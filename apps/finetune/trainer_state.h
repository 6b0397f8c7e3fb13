// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/finetune/options.h"

namespace weft::finetune {

/// The position of a training between two steps, as in Hugging Face's trainer_state.json. Fields without a place there
/// are in the state of a callback named `weft`.
struct TrainerState {
  int64_t step = 0, total_steps = 0;
  double epoch = 0;
  std::vector<std::string> history = {};  ///< the lines printed so far, each a JSON object

  // A state from finetune also has:
  int64_t texts_per_step = 0;       ///< on all ranks; 0: Hugging Face's Trainer wrote it, which does not say so
  int64_t logged = 0;               ///< the step of the last line
  double run_loss = 0;              ///< sum over the steps up to it
  std::vector<double> losses = {};  ///< per rank, sum over the steps since
  std::map<std::string, uint32_t> checksums = {};  ///< CRC-32C of the other files, but for those of shards, when read
};

/// As the last file of its folder: it holds the checksums of the others.
void write_trainer_state(const std::filesystem::path& path, const TrainerState& state, const Options& options);

/// Reads finetune's file, or that of Hugging Face's Trainer, which drops the losses since the last line. Errors: the
/// file cannot be read, is no JSON, or lacks an entry, by name.
TrainerState read_trainer_state(const std::filesystem::path& path);

/// The checkpoint's weights, optimizer and averages are those of a sharded checkpoint (io/checkpoint_index.h), whose
/// files lie beside the others in its folder.
bool is_sharded(const std::filesystem::path& checkpoint);

/// The folder to go on from: `wanted` itself, or for `last` FOLDER/checkpoint-N of the largest N; for `auto` the same
/// where there is one, else "". Errors: there is none; it has no trainer_state.json.
std::string checkpoint_folder(const std::string& wanted, const std::filesystem::path& folder);
/// As above, but intact: if the last checkpoint is damaged, `last` and `auto` take its predecessor, and `note` reports
/// so. Errors: all are damaged.
std::string whole_checkpoint_folder(const std::string& wanted, const std::filesystem::path& folder, std::string& note);

}  // namespace weft::finetune
