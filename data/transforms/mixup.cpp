// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/mixup.h"

#include <algorithm>
#include <cmath>

#include "core/ops/add.h"
#include "core/ops/concat.h"
#include "core/ops/mul.h"

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

/// Every element replaced by its neighbour before; the first by the last.
Tensor rolled(const Tensor& x) {
  const int64_t n = x.size(0);
  return n < 2 ? x : concat({x.slice(0, n - 1, 1), x.slice(0, 0, n - 1)});
}

Tensor mixed_targets(const char* op, const Tensor& labels, int64_t classes, double own) {
  const std::vector<int64_t> label = labels.to_vector<int64_t>();
  const size_t n = label.size();
  std::vector<float> target(n * static_cast<size_t>(classes));
  for (size_t i = 0; i < n; ++i) {
    WEFT_CHECK(label[i] >= 0 && label[i] < classes, op, ": expected labels 0 to ", classes - 1, ", got ", label[i]);
    const auto row = i * static_cast<size_t>(classes);
    target[row + static_cast<size_t>(label[i])] += static_cast<float>(own);
    target[row + static_cast<size_t>(label[(i + n - 1) % n])] += static_cast<float>(1 - own);
  }
  return Tensor::from(target, {static_cast<int64_t>(n), classes}, labels.device());
}

}  // namespace

double symmetric_beta(double alpha, Draw& draw) {
  const double a = gamma(alpha, draw), b = gamma(alpha, draw);
  return a + b > 0 ? a / (a + b) : 0.5;
}

MixedBatch mixup(const Tensor& images, const Tensor& labels, int64_t classes, double alpha, Draw& draw) {
  check("mixup", images, labels, alpha);
  const double own = symmetric_beta(alpha, draw);
  return {add(mul(images, own), rolled(images), 1 - own), mixed_targets("mixup", labels, classes, own)};
}

MixedBatch cutmix(const Tensor& images, const Tensor& labels, int64_t classes, double alpha, Draw& draw) {
  check("cutmix", images, labels, alpha);
  const int64_t height = images.size(1), width = images.size(2);
  const double side = std::sqrt(1 - symmetric_beta(alpha, draw));
  const auto half_height = static_cast<int64_t>(side * static_cast<double>(height) / 2);
  const auto half_width = static_cast<int64_t>(side * static_cast<double>(width) / 2);
  const int64_t y = draw.below(height), x = draw.below(width);
  const int64_t top = std::max<int64_t>(0, y - half_height), bottom = std::min(height, y + half_height);
  const int64_t left = std::max<int64_t>(0, x - half_width), right = std::min(width, x + half_width);
  const int64_t pasted = std::max<int64_t>(0, bottom - top) * std::max<int64_t>(0, right - left);
  const double own = 1 - static_cast<double>(pasted) / static_cast<double>(height * width);
  Tensor mixed = images.clone();
  if (pasted > 0) {
    const auto box = [&](const Tensor& t) { return t.slice(1, top, bottom - top).slice(2, left, right - left); };
    box(mixed).copy_(box(rolled(images)));
  }
  return {mixed, mixed_targets("cutmix", labels, classes, own)};
}

}  // namespace weft::data
