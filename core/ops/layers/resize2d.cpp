// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/resize2d.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/autocast.h"
#include "core/ops/layers/image.h"
#include "core/ops/matmul.h"

// Resizing is linear and separable: a small matrix for the rows, another for the columns, and two products. matmul
// gives the gradients.

namespace weft {
namespace {

/// Keys 1981, "Cubic convolution interpolation for digital image processing", equation 4.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// The weights [out, in] of one direction; `step`: old pixels per new one.
std::vector<double> weights_of(int64_t out, int64_t in, double step, const Resize2dOptions& options) {
  const bool is_cubic = options.interpolation == Interpolation::bicubic;
  const double wider = options.antialias ? std::max(step, 1.0) : 1;  // the filter grows with the step
  const double reach = (is_cubic ? 2 : 1) * wider;
  const auto filter = [&](double x) {
    if (!is_cubic) return triangle(x / wider);
    return cubic(x / wider, options.antialias ? -0.5 : -0.75);
  };
  std::vector<double> weights(static_cast<size_t>(out * in));
  for (int64_t i = 0; i < out; ++i) {
    double* const row = weights.data() + i * in;
    double centre = (static_cast<double>(i) + 0.5) * step - 0.5;
    if (options.align_corners) centre = out > 1 ? static_cast<double>(i * (in - 1)) / static_cast<double>(out - 1) : 0;
    if (!is_cubic && !options.antialias) centre = std::max(centre, 0.0);
    const auto first = static_cast<int64_t>(std::ceil(centre - reach)),
               last = static_cast<int64_t>(std::floor(centre + reach));
    double sum = 0;
    for (int64_t j = first; j <= last; ++j) {
      if (options.antialias && (j < 0 || j >= in)) continue;  // pixels outside do not count
      const double weight = filter(static_cast<double>(j) - centre);
      row[std::clamp<int64_t>(j, 0, in - 1)] += weight;
      sum += weight;
    }
    for (int64_t j = 0; j < in; ++j) row[j] /= sum;
  }
  return weights;
}

/// An old pixel for each new pixel.
std::vector<double> nearest_weights(int64_t out, int64_t in, double scale) {
  std::vector<double> weights(static_cast<size_t>(out * in));
  for (int64_t i = 0; i < out; ++i) {
    const int64_t pixel = scale > 0 ? static_cast<int64_t>(static_cast<double>(i) / scale) : i * in / out;
    weights[static_cast<size_t>(i * in + std::min(pixel, in - 1))] = 1;
  }
  return weights;
}

Tensor matrix(int64_t out, int64_t in, double scale, const Resize2dOptions& options) {
  if (options.interpolation == Interpolation::nearest) return Tensor::from(nearest_weights(out, in, scale), {out, in});
  const double step = scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
  return Tensor::from(weights_of(out, in, step, options), {out, in});
}

void check_input(const Tensor& x) {
  WEFT_CHECK(x.defined() && x.dim() == 4 && x.is_floating(), "resize2d: expected floating [N, H, W, C], got ", x);
  check_image_layout("resize2d", x);
}

}  // namespace

Resize2dWeights resize2d_weights(Size2d from, Size2d to, const Resize2dOptions& options, DType dtype, Device device) {
  WEFT_CHECK(from.h >= 1 && from.w >= 1 && to.h >= 1 && to.w >= 1, "resize2d: expected sizes of at least 1, got ",
             from.h, " x ", from.w, " to ", to.h, " x ", to.w);
  WEFT_CHECK(is_floating(dtype), "resize2d: expected a floating dtype, got ", dtype);
  WEFT_CHECK(
      int{options.interpolation == Interpolation::nearest} + int{options.antialias} + int{options.align_corners} <= 1,
      "resize2d: nearest, antialias and align_corners exclude each other");
  const auto placed = [&](const Tensor& weights) { return weights.to(dtype).to(device); };
  return {placed(matrix(to.h, from.h, options.scale.h, options)),
          placed(matrix(to.w, from.w, options.scale.w, options))};
}

Tensor resize2d(const Tensor& x, const Resize2dWeights& weights) {
  check_input(x);
  const auto [N, H, W, C] = x.dims<4>();
  const auto [new_h, old_h] = weights.rows.dims<2>();
  const auto [new_w, old_w] = weights.columns.dims<2>();
  WEFT_CHECK(old_h == H && old_w == W, "resize2d: weights for images of ", old_h, " x ", old_w, ", got ", x);
  const Autocast off(DType::f32);
  if (H < new_h) {  // the direction first that makes the smaller image in between, and fewer products
    const Tensor wide = matmul(weights.columns, x.reshape({N * H, W, C}));
    return matmul(weights.rows, wide.reshape({N, H, new_w * C})).reshape({N, new_h, new_w, C});
  }
  const Tensor low = matmul(weights.rows, x.reshape({N, H, W * C}));
  return matmul(weights.columns, low.reshape({N * new_h, W, C})).reshape({N, new_h, new_w, C});
}

Tensor resize2d(const Tensor& x, Size2d size, const Resize2dOptions& options) {
  check_input(x);
  return resize2d(x, resize2d_weights({x.size(1), x.size(2)}, size, options, x.dtype(), x.device()));
}

}  // namespace weft
