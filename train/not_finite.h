// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "train/strategy.h"

namespace weft::train {

/// A step after which the loss of all ranks together is not finite.
struct BadStep {
  int64_t epoch = 0;              ///< from 1
  int64_t step = 0;               ///< of the whole run
  double loss = 0;                ///< of all ranks
  bool here = false;              ///< this rank's own loss is one of those that are not finite
  std::function<void()> forward;  ///< forward and loss of the same batch once more, without other ranks
};

/// Ends the run with an error that says where it began: in the weights (names the first), or in the first kernel whose
/// output is not finite when forward and loss run again under watch, on the first rank that it is about. All ranks call
/// it.
[[noreturn]] void fail_not_finite(const dist::World& world, nn::Module& model, Strategy& strategy, const BadStep& step);

}  // namespace weft::train
