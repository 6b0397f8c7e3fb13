// SPDX-License-Identifier: Apache-2.0
#include "train/resume.h"

#include "core/random.h"
#include "train/run_folder.h"

namespace weft::train {

std::string checkpoint_to_resume(const std::string& wanted, const std::filesystem::path& folder,
                                 const dist::World& ranks) {
  if (wanted != "auto") return wanted;
  std::string path;
  if (ranks.is_first()) path = find_checkpoint(folder / RunFolder::kLastCheckpoint).string();
  return ranks.first_says(path, "checkpoint to resume");
}

bool goes_on_in(const std::filesystem::path& folder, const std::string& wanted) {
  std::error_code none;
  return wanted == "auto" || (!wanted.empty() && std::filesystem::equivalent(
                                                     std::filesystem::absolute(wanted).parent_path(), folder, none));
}

void require_same_step(const std::string& path, const Checkpoint& saved, StepSize step, const dist::World& ranks) {
  const int64_t batch = saved.integer("batch_size"), others = ranks.size() * step.accumulate;
  const std::string times = step.accumulate > 1 ? str(", ", step.accumulate, " times") : "";
  if (others == 1)
    WEFT_CHECK(batch == step.on(ranks), "checkpoint ", path, " was made with --batch-size ", batch, ", this run has ",
               step.on(ranks));
  WEFT_CHECK(batch == step.on(ranks), "checkpoint ", path, " was made with ", batch, " images per step, this run has ",
             step.on(ranks), " (", ranks.size(), ranks.size() == 1 ? " rank of " : " ranks of ", step.batch_size, times,
             ")", batch % others == 0 ? str(". Use --batch-size ", batch / others) : "");
}

void save_generator(Checkpoint& checkpoint, Device device) {
  const Generator& random = generator(device);
  checkpoint.integers["generator_seed"] = static_cast<int64_t>(random.seed);
  checkpoint.integers["generator_offset"] = static_cast<int64_t>(random.offset);
}

void load_generator(const Checkpoint& saved, const dist::World& ranks) {
  generator(ranks.device()) = {static_cast<uint64_t>(saved.integer("generator_seed")) ^ seed_of_rank(ranks.rank()),
                               static_cast<uint64_t>(saved.integer("generator_offset"))};
}

}  // namespace weft::train
