// SPDX-License-Identifier: Apache-2.0
// The engine's search for the cause of a loss or gradient that is not finite.
#include <algorithm>
#include <cmath>

#include "train/engine.h"
#include "train/not_finite.h"

namespace weft::train {

void Engine::fail_not_finite(const StepSums::Totals& totals) {
  progress_.end();
  const bool gradient = std::isfinite(totals.loss);
  const bool whole = !parts_.strategy.is_sharded() && !parts_.strategy.pipeline();
  BadSteps bad{.epoch = position_.epoch + 1,
               .last = position_.step + (updates_ ? 1 : 0),
               .loss = totals.loss / weight_of(totals),
               .gradient = gradient,
               .updated = !updates_,
               .f16 = options_.precision == DType::f16,
               .here = gradient ? !totals.own_gradient_is_finite : !totals.own_loss_is_finite,
               .data = [&] { return bad_data(totals.steps); },
               .forward = {},
               .backward = {}};
  bad.first = bad.last - totals.steps + 1;
  bad.of_this_process = bad.first - 1 - first_step_;
  if (whole) bad.forward = [&] { repeat_step([](const Tensor&) {}); };
  if (whole && parts_.world.size() == 1) bad.backward = [&] { repeat_step([](const Tensor& l) { l.backward(); }); };
  train::fail_not_finite(parts_.world, parts_.model, parts_.strategy, parts_.optimizer.flat(), bad);
}

std::string Engine::bad_data(int64_t steps) {
  const int64_t end = position_.step_in_epoch + (updates_ ? 1 : 0), batches = task_.batches();
  const int64_t first = (end - steps) * options_.accumulate, last = std::min(end * options_.accumulate, batches);
  const auto look = [&](const std::vector<Tensor>& tensors, int64_t batch) {
    return not_finite_in(tensors, [&](size_t number, const Shape& place) {
      return task_.origin(position_.epoch, batch, number, place);
    });
  };
  task_.start_epoch(position_.epoch, first);
  for (int64_t batch = first; batch < last; ++batch) {
    const std::optional<Batch> again = task_.next();
    if (!again) break;
    const std::string found = look(again->tensors, batch);
    if (!found.empty()) return found;
  }
  const std::string found = look(unread_batch_, last - 1);
  return found.empty() ? "" : found + ", after what the program did to the batch";
}

void Engine::repeat_step(const std::function<void(const Tensor& loss)>& then) {
  alone_ = true;
  if (options_.accumulate == 1) return then(task_.loss(unread_batch_).loss);
  const int64_t first = (position_.step_in_epoch - (updates_ ? 0 : 1)) * options_.accumulate;
  task_.start_epoch(position_.epoch, first);
  for (int64_t left = std::min(options_.accumulate, task_.batches() - first); left > 0; --left)
    then(task_.loss(next_in_step(0).tensors).loss);
}

}  // namespace weft::train
