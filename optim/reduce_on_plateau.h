// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "optim/optimizer.h"

namespace weft::optim {

struct ReduceOnPlateauOptions {
  bool maximize = false;    ///< the metric should rise (an accuracy), not fall (a loss)
  double factor = 0.1;      ///< the learning rate times this …
  int64_t patience = 10;    ///< … after more than this many steps in a row without improvement
  double threshold = 1e-4;  ///< the least improvement: a share of the best, or a difference
  bool absolute_threshold = false;
  int64_t cooldown = 0;  ///< steps after a reduction that do not count as bad
  double min_lr = 0;
  double eps = 1e-8;  ///< smaller changes of the rate are skipped
};

/// Lowers the learning rates when a metric stops improving, by the rules of PyTorch's ReduceLROnPlateau. Its state
/// makes it no Schedule.
class ReduceOnPlateau {
 public:
  /// The optimizer must live as long as this. Errors: a factor outside (0, 1), patience or cooldown below 0.
  ReduceOnPlateau(Optimizer& optimizer, ReduceOnPlateauOptions options = {});
  /// Once per epoch, with its metric. NaN counts as not better.
  void step(double metric);

  StateDict state_dict() const;
  void load_state_dict(const StateDict& dict);

 private:
  bool is_better(double metric) const;

  Optimizer& optimizer_;
  ReduceOnPlateauOptions options_;
  double best_;
  int64_t bad_steps_ = 0, cooldown_left_ = 0;
};

}  // namespace weft::optim
