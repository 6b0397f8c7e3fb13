// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/source.h"

namespace weft::linear_probe {

std::optional<Examples> ImageSource::next() {
  if (!loader_) return {};
  const auto batch = loader_->next();
  if (!batch) return {};
  return Examples{images_.prepare(batch->images), batch->labels, batch->count};
}

Tensor ImageSource::stand_in() const {
  return Tensor::zeros({1, images_.side(), images_.side(), 3}, DType::f32, images_.device());
}

Tensor FeatureSource::stand_in() const {
  return Tensor::zeros({1, features_.values.size(1)}, features_.values.dtype(), features_.values.device());
}

FeatureSource::FeatureSource(const Features& features, const data::Sampler& order, int64_t batch_size)
    : features_(features),
      loader_(data::rows_of({features.values, features.labels}), order,
              {.batch_size = batch_size, .workers = 0, .device = features.values.device()}) {}

}  // namespace weft::linear_probe
