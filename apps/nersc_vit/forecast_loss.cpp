// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/forecast_loss.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace weft::nersc_vit {
namespace {

/// cos(latitude) of each row over their mean, [1, rows, 1, 1].
Tensor latitude_weights(int64_t rows, Device device) {
  std::vector<float> weights;
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const double latitude =
        rows > 1 ? 0.5 - static_cast<double>(row) / static_cast<double>(rows - 1) : 0;  // half turns
    weights.push_back(static_cast<float>(std::cos(latitude * std::numbers::pi)));
    sum += static_cast<double>(weights.back());
  }
  for (float& weight : weights) weight *= static_cast<float>(static_cast<double>(rows) / sum);
  return Tensor::from(weights, {1, rows, 1, 1}, device);
}

}  // namespace

Tensor relative_l2_loss(const Tensor& prediction, const Tensor& target) {
  return mean(norm(prediction.to(DType::f32) - target, {1, 2, 3}) / norm(target, {1, 2, 3}));
}

Tensor latitude_weighted_rmse(const Tensor& prediction, const Tensor& target) {
  const Tensor weights = latitude_weights(target.size(1), target.device());
  return mean(sqrt(mean(square(prediction.to(DType::f32) - target) * weights, {1, 2})), {0});
}

}  // namespace weft::nersc_vit
