// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/forecast_plot.h"

#include <algorithm>
#include <cmath>

namespace weft::nersc_vit {
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
