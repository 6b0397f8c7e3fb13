// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// y[r, i] = x[r, 0] + … + x[r, i] along the last dimension; `reverse`: x[r, i] + … + x[r, n - 1]. Contiguous, equal
/// sizes. y has x's dtype or f64 if that is floating, else i64 (x: i64, i32, u8, bool). Deterministic.
WEFT_KERNEL(cumsum, const Queue& queue, const View& y, const View& x, bool reverse);

inline void check_cumsum(const View& y, const View& x) {
  const bool fits = is_floating(x.dtype) ? y.dtype == x.dtype || y.dtype == DType::f64 : y.dtype == DType::i64;
  WEFT_CHECK(x.rank >= 1 && y.same_sizes(x) && y.is_contiguous() && x.is_contiguous() && fits,
             "cumsum: expected contiguous tensors of equal sizes, the sums of integers in i64, got ", y, " and ", x);
}

}  // namespace weft::kernels
