// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/forecast.h"

#include <algorithm>
#include <cmath>

#include "apps/nersc_vit/forecast_loss.h"
#include "core/autograd.h"
#include "train/exit.h"
#include "train/not_finite.h"

namespace weft::nersc_vit {

int64_t samples_per_step(const Options& o, const dist::Grid& grid) {
  const int ranks = grid.data()->size();
  if (o.local_batch_size > 0) return o.local_batch_size * ranks;
  if (o.global_batch_size < ranks)
    throw train::UsageError(str("global_batch_size: expected at least one sample for each of ", ranks,
                                " data ranks, got ", o.global_batch_size));
  return o.global_batch_size;
}

data::FieldLoader make_loader(const Options& o, const dist::Grid& grid, Device device, bool training) {
  const auto series =
      std::make_shared<const data::FieldSeries>(training ? o.train_data_path : o.valid_data_path,
                                                series_options(o, training ? o.limit_nsamples : o.limit_nsamples_val));
  // The ranks of a row see the same samples.
  const data::Sampler order(series->size(), {.seed = static_cast<uint64_t>(o.seed),
                                             .shuffle = training,
                                             .rank = grid.data_rank(),
                                             .world = grid.data()->size(),
                                             .tail = data::Tail::joined,
                                             .step = samples_per_step(o, grid)});
  return data::FieldLoader(series, order,
                           {.workers = static_cast<int>(o.num_data_workers), .drop_last = training, .device = device});
}

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
    const double loss = relative_l2_loss(prediction, batch->target).item();
    if (!std::isfinite(loss)) {
      const std::string bad =
          train::not_finite_in({batch->input, batch->target}, [&](size_t number, const Shape& place) {
            return str("'", loader.names()[number], "' of ", loader.origin(0, step, number, place));
          });
      WEFT_CHECK(bad.empty(), "validation: the data are not finite: ", bad,
                 ". Correct them, or leave such samples out");
    }
    sums[0] += count * loss;
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

namespace {

train::Canvas::Color color_of(float value) {
  const float strength = std::min(std::abs(value) / 3, 1.0f);
  const auto other = static_cast<uint8_t>(255 * (1 - strength));
  return value < 0 ? train::Canvas::Color{other, other, 255} : train::Canvas::Color{255, other, other};
}

}  // namespace

train::Canvas draw_channel(const std::vector<Tensor>& fields, int64_t channel) {
  std::vector<train::Canvas> planes;
  for (const Tensor& field : fields) {
    const Tensor plane = field.detach().select(0, 0).select(2, channel).to(Device{}).to(DType::f32);
    const std::vector<float> values = plane.to_vector<float>();
    const auto rows = static_cast<int>(plane.size(0)), columns = static_cast<int>(plane.size(1));
    train::Canvas canvas(columns, rows);
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < columns; ++x) canvas.set(x, y, color_of(values[static_cast<size_t>(y * columns + x)]));
    planes.push_back(std::move(canvas));
  }
  return train::grid(planes, static_cast<int>(planes.size()));
}

}  // namespace weft::nersc_vit
