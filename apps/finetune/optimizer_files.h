// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <vector>

#include "core/random.h"
#include "dist/group/world.h"
#include "nn/models/bert.h"
#include "optim/optimizers.h"
#include "train/strategy.h"

namespace weft::finetune {

/// Writes FOLDER/optimizer.pt as torch.save(AdamW.state_dict()) would for Hugging Face's model: parameters are numbered
/// group after group in the order of its modules, query, key and value apart. `state`: the whole of Optimizer's.
void save_optimizer(const std::filesystem::path& folder, const StateDict& state, const optim::AdamW& optimizer,
                    const nn::BertOptions& model);
/// Reads this rank's part of such a state from FOLDER/optimizer.pt, and of it alone, into the optimizer. Errors: it
/// cannot be read; other groups, other parameters.
void load_optimizer(const std::filesystem::path& folder, train::Strategy& strategy, optim::AdamW& optimizer,
                    const nn::BertOptions& model);

/// FOLDER/scheduler.pt, LambdaLR's state after `step` steps.
void save_scheduler(const std::filesystem::path& folder, const optim::Optimizer& optimizer, int64_t step);
int64_t load_scheduler(const std::filesystem::path& folder);

/// The random generators of all ranks, on their devices. All ranks call it.
std::vector<RandomGenerator> generators_of_ranks(const dist::World& world);
/// FOLDER/weft_rng_state.pth, or weft_rng_state_RANK.pth of several ranks: `{"weft": {"philox_seed",
/// "philox_offset"}}`.
void save_generators(const std::filesystem::path& folder, const std::vector<RandomGenerator>& of_ranks);
/// False: there is no file of this rank for this number of ranks.
bool load_generator(const std::filesystem::path& folder, int rank, int ranks, RandomGenerator& generator);

}  // namespace weft::finetune
