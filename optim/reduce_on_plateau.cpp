// SPDX-License-Identifier: Apache-2.0
#include "optim/reduce_on_plateau.h"
#include "optim/saved_count.h"

#include <algorithm>
#include <limits>

namespace weft::optim {

ReduceOnPlateau::ReduceOnPlateau(Optimizer& optimizer, ReduceOnPlateauOptions options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.maximize ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {
  WEFT_CHECK(options.factor > 0 && options.factor < 1, "ReduceOnPlateau: expected a factor in (0, 1), got ",
             options.factor);
  WEFT_CHECK(options.patience >= 0 && options.cooldown >= 0,
             "ReduceOnPlateau: expected patience and cooldown of at least 0, got ", options.patience, " and ",
             options.cooldown);
}

bool ReduceOnPlateau::is_better(double metric) const {
  const double sign = options_.maximize ? 1 : -1;
  if (options_.absolute_threshold) return sign * metric > sign * best_ + options_.threshold;
  return sign * metric > sign * best_ * (1 + sign * options_.threshold);
}

void ReduceOnPlateau::step(double metric) {
  if (is_better(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= options_.patience) return;
  for (int group = 0; group < optimizer_.groups(); ++group) {
    const double old_lr = optimizer_.lr(group);
    const double new_lr = std::max(old_lr * options_.factor, options_.min_lr);
    if (old_lr - new_lr > options_.eps) optimizer_.set_lr(new_lr, group);
  }
  cooldown_left_ = options_.cooldown;
  bad_steps_ = 0;
}

StateDict ReduceOnPlateau::state_dict() const {
  return {{},
          {{"best", best_},
           {"bad_steps", static_cast<double>(bad_steps_)},
           {"cooldown_left", static_cast<double>(cooldown_left_)}}};
}

void ReduceOnPlateau::load_state_dict(const StateDict& dict) {
  const double best = dict.scalar("best"), bad = dict.scalar("bad_steps"), left = dict.scalar("cooldown_left");
  WEFT_CHECK(is_count(bad) && is_count(left), "ReduceOnPlateau: expected saved counts of steps, got ", bad, " and ",
             left);
  best_ = best;
  bad_steps_ = static_cast<int64_t>(bad);
  cooldown_left_ = static_cast<int64_t>(left);
}

}  // namespace weft::optim
