// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

enum class Reduce : uint8_t {
  sum,
  mean,
  max,          ///< NaN propagates
  min,          ///< NaN propagates
  sum_squares,  ///< sum of x^2
  norm,         ///< sqrt(sum of x^2)
  prod,         ///< integers wrap
};

/// y = reduction of x over the dimensions in which only y has size 1 (same rank). x: floating or i64/i32 (mean,
/// norm: floating only), any strides; y: dense, the dtype of x or f32. Accumulates in f32 (f64 for f64, i64 for
/// integers). Deterministic. An empty reduction gives 0 for sums, 1 for prod and NaN for mean; max and min of no
/// elements are errors.
WEFT_KERNEL(reduce, const Queue& queue, Reduce f, const View& y, const View& x);

/// y (i64, size 1 along `dim`) = index of the first maximum of x along `dim`; NaN counts as the maximum.
WEFT_KERNEL(argmax, const Queue& queue, const View& y, const View& x, int dim);

}  // namespace weft::kernels
