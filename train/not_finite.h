// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "train/strategy.h"

namespace weft::train {

/// Names the value at `place` of a batch's tensor `number`: `'input' of sample 7 (1979.h5, time 3, channel 0)`.
using ValueName = std::function<std::string(size_t number, const Shape& place)>;

/// `nan in 'input' of sample 7 (…), the first of 3 such values`: the first value of a batch that is not finite; ""
/// where all are.
std::string not_finite_in(const std::vector<Tensor>& batch, const ValueName& name);

/// Steps after which the loss of all ranks together, or the gradient of a finite loss, is not finite.
struct BadSteps {
  int64_t epoch = 0;                  ///< from 1
  int64_t first = 0, last = 0;        ///< indices in the whole run: all steps since the last look
  int64_t of_this_process = 0;        ///< steps that this process made ahead of `first`
  double loss = 0;                    ///< loss of all ranks
  bool gradient = false;              ///< it is the gradient
  bool updated = false;               ///< the weights are from after the last of these steps, else from before
  bool f16 = false;                   ///< the model runs in f16
  bool here = false;                  ///< this rank has it
  std::function<std::string()> data;  ///< where this rank's data of these steps are not finite; "" where they are
  std::function<void()> forward;      ///< forward and loss of the last step once more, without other ranks; or null
  std::function<void()> backward;     ///< as `forward`, with the backward; null if other ranks are needed
};

/// Ends the run with an error that names the cause: the data (with the value), the weights (with the first), or a
/// kernel. The last is the first whose output is not finite when the step is repeated under watch, on the first
/// affected rank. All ranks call it.
[[noreturn]] void fail_not_finite(const dist::World& world, nn::Module& model, Strategy& strategy,
                                  const std::shared_ptr<FlatParameters>& flat, const BadSteps& bad);

/// Whether this rank's part of the gradient is finite.
bool gradient_is_finite(FlatParameters& flat);

}  // namespace weft::train
