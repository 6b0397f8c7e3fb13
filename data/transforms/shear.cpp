// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/shear.h"

namespace weft::data {

Picture shear_x(const Picture& picture, double slope, const AffineOptions& options) {
  return affine(picture, {.b = slope}, options);
}

Picture shear_y(const Picture& picture, double slope, const AffineOptions& options) {
  return affine(picture, {.d = slope}, options);
}

}  // namespace weft::data
