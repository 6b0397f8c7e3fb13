// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/train_image/experiment.h"
#include "apps/train_image/position.h"

namespace weft::train_image {

/// A step behind which the loss of all ranks together is not finite.
struct BadStep {
  Tensor images, targets;  ///< this rank's
  double loss = 0;         ///< of all ranks
  bool here = false;       ///< this rank's own loss is one of those that are not finite
};

/// Ends the run with an error that says where it began: in the weights (names the first), or in the first kernel whose
/// output is not finite when forward and loss of the same batch run again under watch, on the first rank that it is
/// about. All ranks call it.
[[noreturn]] void fail_not_finite(Experiment& experiment, const Position& position, const BadStep& step);

}  // namespace weft::train_image
