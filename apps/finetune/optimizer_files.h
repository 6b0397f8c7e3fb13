// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/random.h"
#include "nn/models/bert.h"
#include "optim/adam.h"

namespace weft::finetune {

/// Names of parameters, as nn::Bert has them, in each group of an optimizer.
using GroupNames = std::vector<std::vector<std::string>>;

/// Writes FOLDER/optimizer.pt as torch.save(AdamW.state_dict()) would for Hugging Face's model: parameters are numbered
/// group after group in the order of its modules, query, key and value apart. `state`: the whole of Optimizer's.
void save_optimizer(const std::filesystem::path& folder, const StateDict& state, const optim::Optimizer& optimizer,
                    const GroupNames& groups, const optim::AdamWOptions& options, int64_t depth);
/// Such a state, from FOLDER/optimizer.pt. Errors: it cannot be read; other groups, other parameters.
StateDict load_optimizer(const std::filesystem::path& folder, const GroupNames& groups, int64_t depth);

/// FOLDER/scheduler.pt, as LambdaLR's state behind `step` steps.
void save_scheduler(const std::filesystem::path& folder, const optim::Optimizer& optimizer, int64_t step);
int64_t load_scheduler(const std::filesystem::path& folder);

/// FOLDER/rng_state.pth, or rng_state_RANK.pth of several ranks: `{"weft": {"philox_seed", "philox_offset"}}`.
void save_generators(const std::filesystem::path& folder, const std::vector<Generator>& of_ranks);
/// False: there is none of this rank among so many.
bool load_generator(const std::filesystem::path& folder, int rank, int ranks, Generator& generator);

}  // namespace weft::finetune
