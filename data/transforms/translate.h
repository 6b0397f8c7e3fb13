// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/transforms/affine.h"

namespace weft::data {

/// Moved `right` and `down` by whole pixels; negative: left and up.
Picture translate(const Picture& picture, int64_t right, int64_t down, const Fill& fill = {});

}  // namespace weft::data
