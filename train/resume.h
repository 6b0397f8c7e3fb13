// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "dist/group/world.h"
#include "io/checkpoint.h"

namespace weft::train {

// What programs that can be resumed have in common.

/// The checkpoint to go on from: `wanted` itself, or for `auto` the last one of the run folder (find_checkpoint) as
/// rank 0 sees it; "": begin anew. All ranks call it.
std::string checkpoint_to_resume(const std::string& wanted, const std::filesystem::path& folder,
                                 const dist::World& ranks);

/// `wanted` is `auto` or a file of this folder: the run goes on in it. Else it is a new one.
bool goes_on_in(const std::filesystem::path& folder, const std::string& wanted);

/// Samples of a step on all ranks.
struct StepSize {
  int64_t batch_size = 1;  ///< of each rank at a time
  int64_t accumulate = 1;  ///< so many times
  int64_t on(const dist::World& ranks) const { return batch_size * accumulate * ranks.size(); }
};

/// Errors unless a step of this run has as many images as one of the run that wrote the checkpoint (its integer
/// `batch_size`): a step is a global batch, and any number of ranks may go on whose batches add up to the same.
void require_same_step(const std::string& path, const Checkpoint& saved, StepSize step, const dist::World& ranks);

/// What tells the random generators of ranks apart; 0 for rank 0, which draws what one process would.
inline uint64_t seed_of_rank(int rank) { return static_cast<uint64_t>(rank) * 0x9E3779B97F4A7C15ull; }

/// Rank 0's random generator of the device into a checkpoint, and back into that of any rank.
void save_generator(Checkpoint& checkpoint, Device device);
void load_generator(const Checkpoint& saved, const dist::World& ranks);

}  // namespace weft::train
