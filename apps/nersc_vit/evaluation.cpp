// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/evaluation.h"

#include <algorithm>

#include "apps/nersc_vit/forecast_loss.h"
#include "core/autograd.h"

namespace weft::nersc_vit {

Score evaluate(data::FieldLoader& loader, int64_t most_steps, const dist::World& ranks,
               const std::function<Tensor(const Tensor&)>& forward,
               const std::function<void(const std::vector<Tensor>&)>& shown) {
  const NoGrad no_grad;
  loader.start(0);
  const int64_t steps = std::min(most_steps, loader.steps_per_epoch());
  std::vector<double> sums;
  double samples = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const auto batch = loader.next();
    const Tensor prediction = forward(batch->input);
    const std::vector<double> rmse = latitude_weighted_rmse(prediction, batch->target).to_vector<double>();
    const auto count = static_cast<double>(batch->count);
    sums.resize(1 + rmse.size());
    sums[0] += count * relative_l2_loss(prediction, batch->target).item();
    for (size_t c = 0; c < rmse.size(); ++c) sums[c + 1] += count * rmse[c];
    samples += count;
    if (step + 1 == steps) shown({batch->input, batch->target, prediction});
  }
  sums.push_back(samples);
  sums = ranks.sum(sums, "validation");
  samples = sums.back();
  sums.pop_back();
  for (double& sum : sums) sum /= samples;
  return {.loss = sums.front(), .rmse = {sums.begin() + 1, sums.end()}};
}

}  // namespace weft::nersc_vit
