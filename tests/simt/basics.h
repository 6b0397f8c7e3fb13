// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/queue.h"
#include "kernels/view.h"

namespace weft::kernels::WEFT_DEVICE {

/// out[block * threads + thread] = block * 10000 + thread, both linear.
void indices(const Queue& queue, int* out, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
             unsigned bz);
/// y = x * factor
void scale(const Queue& queue, const View& y, const View& x, float factor);
/// Reverses each part of `threads` elements, through static and dynamic shared memory.
void reverse(const Queue& queue, float* y, const float* x, unsigned blocks, unsigned threads);
/// Counts keys below 16; *sum += n in float atomics.
void histogram(const Queue& queue, int* bins, float* sum, const int* keys, int n);

}  // namespace weft::kernels::WEFT_DEVICE
