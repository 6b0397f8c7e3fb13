// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

// Averages of weights over the steps of a training; flat ranges of n elements (rank 1, contiguous), all f32 or all f64.

struct EmaArguments {
  double decay = 0.999;
  bool warmup = false;  ///< the decay of update t (from 0) is at most (1 + t) / (10 + t)
};

/// average += (1 - d) (w - average), d the decay; `count` holds t, the updates so far, on the device, in the dtype of
/// w.
WEFT_KERNEL(ema_step, const Queue& queue, const View& average, const View& w, const View& count,
            EmaArguments arguments);

/// Swaps the values of two ranges.
WEFT_KERNEL(exchange, const Queue& queue, const View& a, const View& b);

}  // namespace weft::kernels
