// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// True while a backward pass that runs on this thread (or one that it runs inside) may still bring `leaf` a gradient:
/// ops that use it have not been gone through yet. Inside an accumulated hook of the leaf, its own pass no longer
/// counts. Sharded parameters are given back when nobody waits for them any more.
bool gradient_pending(const Tensor& leaf);

}  // namespace weft
