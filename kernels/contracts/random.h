// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// Random numbers are the function Philox4x32-10(key = seed, counter) of kernels/contracts/philox.h; the same
/// numbers on every device. `state` is an i64[2] tensor on the device: {seed, base}; counters start at base + offset,
/// so that a replayed graph advances when `base` is raised in device memory. Element i uses word i % 4 of block base +
/// offset + i / 4, for any launch geometry (f64 draws use two words: words 2 (i % 2), 2 (i % 2) + 1 of block base +
/// offset + i / 2).
struct RandomArguments {
  uint64_t offset = 0;
};

/// The interval [low, high), and the least and the largest number of a dtype in the interval: rounding never leaves it.
struct UniformRange {
  double low, high, least, most;
};
/// low = high always gives low. Errors: low > high, bounds that are not finite, no number of the dtype between them.
UniformRange uniform_range(DType dtype, double low, double high);

/// y = uniform in [low, high), the range of y's dtype. Floating dtypes; contiguous.
WEFT_KERNEL(random_uniform, const Queue& queue, const View& y, const View& state, RandomArguments random,
            UniformRange range);

/// y = integers in [low, low + count), i64: low + floor(count u), u the draws of an f64 of random_uniform. count at
/// most 2^53; contiguous.
WEFT_KERNEL(random_integers, const Queue& queue, const View& y, const View& state, RandomArguments random, int64_t low,
            int64_t count);

/// Checks the weights of multinomial(). Errors: `fine`[i] (bool, contiguous) is false, so row i has no valid weights;
/// on a GPU the host's next wait throws (wrong_index.h). `positive`: how many positive weights a row needs.
WEFT_KERNEL(check_weights, const Queue& queue, const View& fine, int64_t positive);

/// y = normal by Box-Muller on the words of one block: elements 4k, 4k+1 from words 0, 1 and 4k+2, 4k+3 from 2, 3.
WEFT_KERNEL(random_normal, const Queue& queue, const View& y, const View& state, RandomArguments random, double mean,
            double std);

/// y = 1 with probability p, else 0; any dtype.
WEFT_KERNEL(random_bernoulli, const Queue& queue, const View& y, const View& state, RandomArguments random, double p);

/// y (i64 [n]) = a permutation of 0 … n-1: permutation_of(seed, counter, n) of kernels/contracts/permutation.h, so that
/// elements are independent and equal on every device.
WEFT_KERNEL(random_permutation, const Queue& queue, const View& y, const View& state, RandomArguments random);

/// y = x keep / (1 - p), keep = uniform >= p (Srivastava et al. 2014). Backward is the same call on dy: the mask is
/// recomputed, never stored.
WEFT_KERNEL(dropout, const Queue& queue, const View& y, const View& x, const View& state, RandomArguments random,
            double p);

}  // namespace weft::kernels
