// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// How many elements over `dims` (none named: all) are not 0: i64.
Tensor count_nonzero(const Tensor& x, const std::vector<int64_t>& dims = {});
/// sum() and mean() of the elements that are no NaN; without one 0 and NaN. Errors: not floating.
Tensor nansum(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);
Tensor nanmean(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

/// The covariances [V, V] of the rows of x [V, N], of which each is a variable: sums of products over N - correction.
/// Errors: other ranks, not floating, N <= correction.
Tensor cov(const Tensor& x, int64_t correction = 1);
/// The correlations [V, V] of the rows of x [V, N], from -1 to 1. Errors: as cov().
Tensor corrcoef(const Tensor& x);
/// The integral of y along `dim` by the trapezoidal rule, for points `step` apart. Errors: not floating.
Tensor trapezoid(const Tensor& y, double step = 1, Integer dim = -1);
/// The integral for values at the points x, which have y's sizes or are one row. Errors: other sizes.
Tensor trapezoid(const Tensor& y, const Tensor& x, Integer dim = -1);

}  // namespace weft
