// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "core/state_dict.h"

namespace weft::optim {

struct LossScalerOptions {
  double scale = 65536;              ///< initial
  double growth = 2, backoff = 0.5;  ///< factors of the scale
  int64_t growth_interval = 2000;    ///< steps without overflow after which it grows
};

/// Dynamic loss scaling, which lifts gradients into the range of f16 (Micikevicius et al. 2018, section 3.2): the scale
/// shrinks when a gradient overflows, and that step is skipped; it grows after many steps without overflow.
///   (loss * scaler.scale()).backward();
///   if (scaler.update(std::isfinite(norm of the gradients))) { gradients *= 1 / scale before update; adam.step(); }
class LossScaler {
 public:
  /// Errors: a scale or factors that are not positive, growth below 1, backoff above 1, an interval below 1.
  explicit LossScaler(LossScalerOptions options = {});

  double scale() const { return scale_; }
  /// After each backward: returns whether to make the step.
  bool update(bool gradients_are_finite);

  /// The scale and its count of steps, for a checkpoint. Errors of load: a missing name.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& dict);

 private:
  LossScalerOptions options_;
  double scale_;
  int64_t good_steps_ = 0;  ///< since the scale last changed
};

}  // namespace weft::optim
