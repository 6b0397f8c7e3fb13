// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "io/checkpoint.h"
#include "optim/ema.h"
#include "train/strategy.h"

namespace weft::train {

struct AverageOptions {
  double decay = 0;  ///< rate of the exponential moving average of weights; 0: none is kept
  bool warmup = false;
};

/// The averages of what the optimizer changes, and of the model's buffers; null where none are wanted.
std::unique_ptr<optim::Ema> make_averages(const AverageOptions& options, const optim::Optimizer& optimizer,
                                          nn::Module& model);

/// While the result lives, the model has the averages; null without any.
std::unique_ptr<optim::Ema::Swapped> averaged(optim::Ema* averages);

/// Adds the parts `ema` and `ema_buffers`, nothing without averages. All ranks call it.
void save_averages(Checkpoint& checkpoint, Strategy& parallel, const optim::Ema* averages);
/// Errors: averages are wanted and the checkpoint, from `path`, has none; they are of another model.
void load_averages(const std::string& path, const Checkpoint& saved, Strategy& parallel, optim::Ema* averages);

}  // namespace weft::train
