// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "apps/support/checkpoint.h"
#include "apps/support/flags.h"
#include "apps/support/parallel.h"
#include "optim/ema.h"

namespace weft::support {

struct AverageOptions {
  double decay = 0;  ///< of the exponential moving average of weights; 0: none is kept
  bool warmup = false;
};

/// `--ema`, `--ema-warmup`.
void add_flags(Flags& flags, AverageOptions& options);

/// The averages of what the optimizer changes, and of the model's buffers; null where none are wanted.
std::unique_ptr<optim::Ema> make_averages(const AverageOptions& options, const optim::Optimizer& optimizer,
                                          nn::Module& model);

/// While the result lives, the model has the averages; null without any.
std::unique_ptr<optim::Ema::Swapped> averaged(optim::Ema* averages);

/// Adds the parts `ema` and `ema_buffers`, nothing without averages. All ranks call it.
void save_averages(Checkpoint& checkpoint, Parallel& parallel, const optim::Ema* averages);
/// Errors: averages are wanted and the checkpoint, from `path`, has none; they are of another model.
void load_averages(const std::string& path, const Checkpoint& saved, Parallel& parallel, optim::Ema* averages);

}  // namespace weft::support
