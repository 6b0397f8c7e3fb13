// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/mixup.h"

#include <algorithm>
#include <cmath>

#include "core/ops/layers/image.h"

namespace weft::data {
namespace {

/// Gamma(shape, 1).
double gamma(double shape, Draw& draw) {
  if (shape < 1) {
    const double boost = std::pow(1.0 - draw.uniform(), 1 / shape);
    return gamma(shape + 1, draw) * boost;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1.0 - draw.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

void check(const char* op, const Tensor& images, const Tensor& labels, double alpha) {
  WEFT_CHECK(images.defined() && images.is_floating() && images.dim() == 4, op,
             ": expected floating images [N, H, W, C], got ", images);
  WEFT_CHECK(labels.defined() && labels.dtype() == DType::i64 && labels.sizes() == Shape{images.size(0)}, op,
             ": expected labels i64[", images.size(0), "], got ", labels);
  WEFT_CHECK(alpha > 0, op, ": expected an alpha above 0, got ", alpha);
}

}  // namespace

double detail::symmetric_beta(double alpha, Draw& draw) {
  const double a = gamma(alpha, draw), b = gamma(alpha, draw);
  // With a small alpha both are often less than the smallest double; then either is nearly the whole sum.
  return a + b > 0 ? a / (a + b) : draw.coin() ? 1 : 0;
}

MixedBatch mixup(const Tensor& images, const Tensor& labels, int64_t classes, double alpha, Draw& draw) {
  check("mixup", images, labels, alpha);
  const double own = detail::symmetric_beta(alpha, draw);
  const ImageBox whole{.bottom = images.size(1), .right = images.size(2)};
  return {image_mix(images, whole, own), mixed_targets(labels, classes, own)};
}

MixedBatch cutmix(const Tensor& images, const Tensor& labels, int64_t classes, double alpha, Draw& draw) {
  check("cutmix", images, labels, alpha);
  const int64_t height = images.size(1), width = images.size(2);
  const double side = std::sqrt(1 - detail::symmetric_beta(alpha, draw));
  const auto half_height = static_cast<int64_t>(side * static_cast<double>(height) / 2);
  const auto half_width = static_cast<int64_t>(side * static_cast<double>(width) / 2);
  const int64_t y = draw.below(height), x = draw.below(width);
  const ImageBox box{.top = std::max<int64_t>(0, y - half_height),
                     .bottom = std::min(height, y + half_height),
                     .left = std::max<int64_t>(0, x - half_width),
                     .right = std::min(width, x + half_width)};
  const int64_t pasted = (box.bottom - box.top) * (box.right - box.left);
  const double own = 1 - static_cast<double>(pasted) / static_cast<double>(height * width);
  return {image_mix(images, box, 0), mixed_targets(labels, classes, own)};
}

}  // namespace weft::data
