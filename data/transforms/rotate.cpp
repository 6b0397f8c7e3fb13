// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/rotate.h"

#include <cmath>
#include <numbers>

namespace weft::data {
namespace {

/// To 15 decimals, so that quarter turns have a sine and cosine of exactly 0 and hit pixel centres.
double rounded(double value) { return static_cast<double>(std::round(value * 1e15L) / 1e15L); }

}  // namespace

Picture rotate(const Picture& picture, double degrees, const AffineOptions& options) {
  const double angle = -(degrees - 360 * std::floor(degrees / 360)) * (std::numbers::pi / 180);
  const double cosine = rounded(std::cos(angle)), sine = rounded(std::sin(angle));
  const double x = static_cast<double>(picture.width) / 2, y = static_cast<double>(picture.height) / 2;
  const AffineMatrix matrix{.a = cosine,
                            .b = sine,
                            .c = cosine * -x + sine * -y + x,
                            .d = -sine,
                            .e = cosine,
                            .f = -sine * -x + cosine * -y + y};
  return affine(picture, matrix, options);
}

}  // namespace weft::data
