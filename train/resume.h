// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "data/dataset.h"
#include "dist/group/world.h"
#include "io/checkpoint.h"
#include "train/record/run_folder.h"

namespace weft::train {

// Parts that programs with resumable runs share.

/// The checkpoint to go on from: `last` or its newest intact predecessor (find_whole_checkpoint) as rank 0 sees the
/// folder. Rank 0 reports a skipped damaged checkpoint on stderr; "": a new run. All ranks call it. Errors: there are
/// checkpoints, and all are damaged.
std::string whole_checkpoint(const std::filesystem::path& last, const dist::World& ranks);
/// The checkpoint to resume from if `wanted` is `auto` (in the run folder) or a run folder itself; else `wanted`.
std::string checkpoint_to_resume(const std::string& wanted, const std::filesystem::path& folder,
                                 const dist::World& ranks);

/// `wanted` is `auto`, this folder or a file of it: the run goes on in this folder. Else it is a new run.
bool goes_on_in(const std::filesystem::path& folder, const std::string& wanted);

/// Samples of a step on all ranks.
struct StepSize {
  int64_t batch_size = 1;  ///< samples of each rank at a time
  int64_t accumulate = 1;  ///< batches per step
  int64_t ranks = 1;       ///< with samples of their own
  int64_t all() const { return batch_size * accumulate * ranks; }
};

/// The value of `name = value` in a config.toml, without quotation marks; "": it is not there.
std::string setting_of(const std::string& toml, const std::string& name);
/// Settings by name, with the value in a checkpoint and that of this run: {"lr", "0.1 -> 0.2"}.
using ChangedSettings = std::map<std::string, std::string>;
/// The differences between two configurations (`name = value` or `name: value` on each line), but for the settings in
/// `ignored`, which change no result. A setting that one of them lacks is left out: another version wrote it.
ChangedSettings changed_settings(const std::string& saved, const std::string& now, const std::string& ignored);
/// `lr 0.1 -> 0.2, seed 1 -> 2`.
std::string text_of(const ChangedSettings& changes);
/// `with other settings than the checkpoint: ` and the same; "": nothing has changed.
std::string note_of(const ChangedSettings& changes);

/// Errors unless all ranks were started with the same settings. Settings named in `own`, such as places of files, may
/// differ between machines. All ranks call it.
void require_same_settings(const dist::World& ranks, const std::string& settings, const std::string& own);
/// Errors unless all ranks have opened sets of the same sizes and classes; those that are null are left out. All ranks
/// call it.
void require_same_images(const dist::World& ranks, const data::Dataset* train, const data::Dataset* val,
                         const data::Dataset* test = nullptr);
/// Errors unless all ranks have read the same from `path`: without a shared folder one may have found an older file.
void require_same_checkpoint(const dist::World& ranks, const std::string& path, const Checkpoint& saved);

/// The numbers and texts of a checkpoint, without its parts; rank 0 alone checks a file's seal. All ranks call it.
/// Errors: rank 0's, on all of them; they read different ones.
Checkpoint read_notes(const std::string& path, const dist::World& ranks);

/// Whether the run folder's checkpoint_best is of the epoch `best_epoch`, as rank 0 sees it. All ranks call it.
bool has_best_of(const RunFolder* folder, int64_t best_epoch, const dist::World& ranks);

/// Errors unless a step of this run has as many images as one of the run that wrote the checkpoint (its integer
/// `batch_size`): a step is a global batch, and any number of ranks may go on whose batches add up to the same.
void require_same_step(const std::string& path, const Checkpoint& saved, StepSize step);

/// Rank 0's random generator of the device into a checkpoint, and back into that of any rank.
void save_generator(Checkpoint& checkpoint, Device device);
void load_generator(const Checkpoint& saved, const dist::World& ranks);

}  // namespace weft::train
