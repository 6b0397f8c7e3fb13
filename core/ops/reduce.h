// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The sum of x over `dims` (none named: all), accumulated in f32 (f64 for f64); integers and bool give i64. The
/// reduced dimensions go, or stay with size 1 with keep_dims. The sum of nothing is 0.
Tensor sum(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

/// The product of x over `dims` (none named: all), accumulated in f32 (f64 for f64); integers and bool give i64, and
/// wrap. The product of nothing is 1.
Tensor prod(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

/// The mean of x over `dims` (none named: all), accumulated in f32 (f64 for f64); of integers as f32. The reduced
/// dimensions go, or stay with size 1 with keep_dims. The mean of nothing is NaN.
Tensor mean(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

/// The largest element of x over `dims` (none named: all); NaN wins. Elements that tie share the gradient equally.
/// Errors: nothing to choose from.
Tensor max(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

/// The smallest element of x over `dims` (none named: all); NaN wins. Elements that tie share the gradient equally.
/// Errors: nothing to choose from.
Tensor min(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

/// The 2-norm sqrt(sum of x^2) over `dims` (none named: all). The gradient of a zero norm is 0.
Tensor norm(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

struct VarOptions {
  std::vector<int64_t> dims = {};  ///< none: all
  int64_t correction = 1;          ///< divides by count - correction: 1 is Bessel's, 0 the variance of these numbers
  bool keep_dims = false;
};

/// The mean of squared distances from the mean over `dims`, computed in f32 (f64 for f64). Inf or NaN where count <=
/// correction. Errors: not a floating tensor.
Tensor var(const Tensor& x, const VarOptions& options = {});
/// Its root. The gradient of equal numbers is 0.
Tensor std(const Tensor& x, const VarOptions& options = {});

/// log(sum over `dims` of e^x) (none named: all), without overflow; -inf where all are -inf. Errors: nothing to sum,
/// not a floating tensor.
Tensor logsumexp(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

/// The i64 index of the first largest element along `dim`; NaN counts as the largest. No gradient.
Tensor argmax(const Tensor& x, Integer dim, bool keep_dims = false);
/// As above, for the first smallest element; NaN counts as the smallest.
Tensor argmin(const Tensor& x, Integer dim, bool keep_dims = false);

/// y[i] = x[0] + … + x[i] along `dim`; of x's sizes. Integers and bool are summed in i64. Errors: no such dimension.
Tensor cumsum(const Tensor& x, Integer dim);
/// y[i] = x[0] … x[i] along `dim`; of x's sizes, in log2(length) passes. Errors: no such dimension.
Tensor cumprod(const Tensor& x, Integer dim);
/// y[i] = log(e^x[0] + … + e^x[i]) along `dim`, without overflow; of x's sizes, in log2(length) passes. Errors: no such
/// dimension, not a floating tensor.
Tensor logcumsumexp(const Tensor& x, Integer dim);

/// The distances [..., N, M] of the points a [..., N, D] and b [..., M, D] in the 2-norm; the differences [..., N, M,
/// D] are stored. The gradient of distance 0 is 0. Errors: sizes that do not fit.
Tensor cdist(const Tensor& a, const Tensor& b);

}  // namespace weft
