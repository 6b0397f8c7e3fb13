// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// True while a backward pass that runs on this thread (or an enclosing pass) may still add to the gradient of `leaf`:
/// ops that use the leaf are still to come. Inside an accumulated hook of the leaf, its own pass no longer
/// counts. Sharded parameters are given back when nobody waits for them any more.
bool gradient_pending(const Tensor& leaf);

}  // namespace weft
