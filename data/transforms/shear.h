// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/transforms/affine.h"

namespace weft::data {

/// Rows pushed sideways in proportion to their distance from the upper edge: u = x + slope y, with the upper left
/// corner at rest.
Picture shear_x(const Picture& picture, double slope, const AffineOptions& options = {});
/// Columns pushed up or down: v = y + slope x.
Picture shear_y(const Picture& picture, double slope, const AffineOptions& options = {});

}  // namespace weft::data
