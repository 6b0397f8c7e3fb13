// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

// index holds i64 positions along `dim`, each in [0, size of that dimension); any other index is an error on the CPU.
// On a GPU it reads as NaN (floating) or 0, never out of bounds, and the host's next wait throws the error
// (wrong_index.h).

/// y = rows of x: y.sizes equal x.sizes except in dim, where the size is index's length (index rank 1). Contiguous; any
/// dtype.
WEFT_KERNEL(index_select, const Queue& queue, const View& y, const View& x, const View& index, int dim);

/// dx = 0, then dx[index[i]] += dy[i] along dim. Deterministic: each row of dx sums its sources in order of i.
WEFT_KERNEL(index_select_backward, const Queue& queue, const View& dx, const View& dy, const View& index, int dim);

/// y[i, j, …] = x[i, index[i, j, …], …]: index has y's sizes and x's rank (dim differs); contiguous.
WEFT_KERNEL(gather, const Queue& queue, const View& y, const View& x, const View& index, int dim);

/// dx = 0, then adds dy where gather read. Deterministic.
WEFT_KERNEL(gather_backward, const Queue& queue, const View& dx, const View& dy, const View& index, int dim);

/// y[index[i]] = values[i] for y [D, …] and values [I, …], index [I]; for equal positions the last values are stored.
/// Contiguous; any dtype. A position out of range changes nothing.
WEFT_KERNEL(index_put, const Queue& queue, const View& y, const View& values, const View& index);

/// y = size * y + index (i64, equal sizes): one step of Horner's rule from elements' coordinates to their positions in
/// memory. A negative index counts from the end of its dimension of `size`; after an index out of range y stays -1.
WEFT_KERNEL(ravel_index, const Queue& queue, const View& y, const View& index, int64_t size);

/// y (i64 [count, rank of x]) = the coordinates of the elements of x (bool) that are true, in row-major order.
/// `ends`: the cumsum of x's elements, i64 [numel]; its last number is `count`. Contiguous.
WEFT_KERNEL(nonzero, const Queue& queue, const View& y, const View& x, const View& ends);

}  // namespace weft::kernels
