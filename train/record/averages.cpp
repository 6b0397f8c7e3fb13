// SPDX-License-Identifier: Apache-2.0
#include "train/record/averages.h"

#include <algorithm>

namespace weft::train {

std::unique_ptr<optim::Ema> make_averages(const AverageOptions& options, const optim::Optimizer& optimizer,
                                          nn::Module& model) {
  if (options.decay == 0) return nullptr;
  return std::make_unique<optim::Ema>(optimizer.flat(), model.buffers(),
                                      optim::EmaOptions{.decay = options.decay, .warmup = options.warmup});
}

std::unique_ptr<optim::Ema::Swapped> averaged(optim::Ema* averages) {
  return averages ? std::make_unique<optim::Ema::Swapped>(*averages) : nullptr;
}

void save_averages(Checkpoint& checkpoint, Strategy& parallel, const optim::Ema* averages) {
  if (!averages) return;
  checkpoint.parts.emplace_back("ema", parallel.gathered(averages->state_dict()));
  checkpoint.parts.emplace_back("ema_buffers", averages->buffers());
}

void load_averages(const std::string& path, const Checkpoint& saved, Strategy& parallel, optim::Ema* averages) {
  if (!averages) return;
  const bool has = std::any_of(saved.parts.begin(), saved.parts.end(), [](const auto& p) { return p.first == "ema"; });
  WEFT_CHECK(has, "checkpoint ", path, " was made without --ema: its averages cannot be resumed");
  averages->load_state_dict(parallel.part_of(saved.part("ema")), saved.part("ema_buffers"));
}

}  // namespace weft::train
