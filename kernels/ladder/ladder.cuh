// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/ladder/ladder.h"

// Every step includes this. A step lives in a namespace of its own (the steps of a ladder are compiled together), what
// steps share in one (inline) that the framework's kernels do not know.

namespace weft::kernels::cuda::inline rungs {

using ladder::Rung, ladder::Sizes;

/// How many tiles of `tile` cover n.
inline unsigned tiles(int64_t n, int64_t tile) { return static_cast<unsigned>((n + tile - 1) / tile); }

}  // namespace weft::kernels::cuda::inline rungs
