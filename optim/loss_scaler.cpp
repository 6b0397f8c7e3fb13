// SPDX-License-Identifier: Apache-2.0
#include "optim/loss_scaler.h"
#include "optim/saved_count.h"

namespace weft::optim {

LossScaler::LossScaler(LossScalerOptions options) : options_(options), scale_(options.scale) {
  WEFT_CHECK(
      options.scale > 0 && options.growth >= 1 && options.backoff > 0 && options.backoff <= 1 &&
          options.growth_interval >= 1,
      "loss_scaler: expected a scale above 0, growth of at least 1, backoff above 0 and at most 1, an interval of "
      "at least 1, got ",
      options.scale, ", ", options.growth, ", ", options.backoff, ", ", options.growth_interval);
}

bool LossScaler::update(bool gradients_are_finite) {
  if (!gradients_are_finite) {
    scale_ *= options_.backoff;
    good_steps_ = 0;
    return false;
  }
  if (++good_steps_ == options_.growth_interval) {
    scale_ *= options_.growth;
    good_steps_ = 0;
  }
  return true;
}

StateDict LossScaler::state_dict() const {
  return {{}, {{"scale", scale_}, {"good_steps", static_cast<double>(good_steps_)}}};
}

void LossScaler::load_state_dict(const StateDict& dict) {
  const double scale = dict.scalar("scale"), good_steps = dict.scalar("good_steps");
  WEFT_CHECK(scale > 0 && std::isfinite(scale), "loss_scaler: expected a finite saved scale above 0, got ", scale);
  WEFT_CHECK(is_count(good_steps), "loss_scaler: expected a saved count of good steps, got ", good_steps);
  scale_ = scale;
  good_steps_ = static_cast<int64_t>(good_steps);
}

}  // namespace weft::optim
