// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/ladder/ladder.h"

// Every step includes this. A step lives in a namespace of its own (the steps of a ladder are compiled together).
// Shared code is in an inline namespace that the framework's kernels do not use.

namespace weft::kernels::cuda::inline rungs {

using ladder::Rung, ladder::Sizes;

/// How many tiles of `tile` cover n.
inline unsigned tiles(int64_t n, int64_t tile) { return static_cast<unsigned>((n + tile - 1) / tile); }

}  // namespace weft::kernels::cuda::inline rungs
