// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/conv2d.h"

namespace weft {

/// Height and width: `{3, 3}`.
using kernels::Size2d;

}  // namespace weft
