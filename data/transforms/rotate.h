// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/transforms/affine.h"

namespace weft::data {

/// Turned counter-clockwise about the centre, in degrees, in its own size: corners are lost.
Picture rotate(const Picture& picture, double degrees, const AffineOptions& options = {});

}  // namespace weft::data
