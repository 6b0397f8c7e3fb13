// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/source.h"

#include <algorithm>

#include "core/ops/index_select.h"

namespace weft::linear_probe {

std::optional<Examples> PictureSource::next() {
  if (!loader_) return {};
  const auto batch = loader_->next();
  if (!batch) return {};
  return Examples{pictures_.prepare(batch->images), batch->labels, batch->count};
}

Tensor PictureSource::stand_in() const {
  return Tensor::zeros({1, pictures_.side(), pictures_.side(), 3}, DType::f32, pictures_.device());
}

Tensor FeatureSource::stand_in() const {
  return Tensor::zeros({1, features_.values.size(1)}, features_.values.dtype(), features_.values.device());
}

std::optional<Examples> FeatureSource::next() {
  const int64_t count = std::min(batch_, order_.size() - position_);
  if (count <= 0) return {};
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(order_.index(epoch_, position_ + i));
  position_ += count;
  const Tensor index = Tensor::from(rows, features_.values.device());
  return Examples{index_select(features_.values, 0, index), index_select(features_.labels, 0, index), count};
}

}  // namespace weft::linear_probe
