// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/half.h"
#include "kernels/queue.h"

namespace weft::kernels::WEFT_DEVICE {

/// c = a b for row-major n x n matrices, n a multiple of 64: tiles of 64x64, 4x4 elements per thread, 16-byte loads.
void tiled_matmul(const Queue& queue, float* c, const float* a, const float* b, int n);

enum class MmaBug { none, waits_for_too_few, no_barrier_before_overwriting, exits_without_waiting };
/// c = a b with 16-bit a [n x n] row-major, b [n x n] row-major: cp.async in two stages, ldmatrix, mma.sync.
template <class T>
void mma_matmul(const Queue& queue, float* c, const T* a, const T* b, int n, MmaBug bug = MmaBug::none);
/// c = a b in tf32, one warp per 16x8 tile.
void tf32_matmul(const Queue& queue, float* c, const float* a, const float* b, int n);

}  // namespace weft::kernels::WEFT_DEVICE
