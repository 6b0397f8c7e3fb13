// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// Elements in order, and where each stood along the dimension (i64).
struct Sorted {
  Tensor values, indices;
};

// Any dtype. Equal elements keep their order; NaN counts as larger than every number. The gradient of a value flows to
// where it stood. Errors: no such dimension.

/// The elements along `dim` from the smallest to the largest, or from the largest.
Sorted sort(const Tensor& x, Integer dim = -1, bool descending = false);
/// sort's indices.
Tensor argsort(const Tensor& x, Integer dim = -1, bool descending = false);
/// The k largest (or smallest) elements along `dim`, the first of them first. Errors: k < 0 or more than there are.
Sorted topk(const Tensor& x, Integer k, Integer dim = -1, bool largest = true);
/// values[i] = the largest of x[0] … x[i] along `dim`, and its place, the last one of equals; of x's sizes, in
/// log2(length) passes.
Sorted cummax(const Tensor& x, Integer dim);
/// As above, the smallest; here NaN counts as smaller than every number.
Sorted cummin(const Tensor& x, Integer dim);
/// How many elements of a row of `sorted` [..., n] (ascending) are less than each value, i64 like `values` [..., m];
/// `right`: less or equal. `sorted` [n] serves values of any sizes. No gradient. Errors: other dtypes, devices or rows.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
/// Which elements of x are among `values`, of x's dtype: bool of x's sizes. Errors: other dtypes or devices.
Tensor isin(const Tensor& x, const Tensor& values);

/// The lower of the middle elements of all of x; NaN where x has one. Errors: none, not floating.
Tensor median(const Tensor& x);
/// As above along `dim`, with the places. Errors: as above.
Sorted median(const Tensor& x, Integer dim, bool keep_dims = false);
/// The q-quantile of all of x (floating), between two neighbours in proportion; NaN where x has one. Errors: no
/// elements, q outside [0, 1].
Tensor quantile(const Tensor& x, double q);
/// As above along `dim`.
Tensor quantile(const Tensor& x, double q, Integer dim, bool keep_dims = false);
/// How many elements of x (floating) lie in each of `bins` equal parts of [low, high], i64; the last one holds its end,
/// others none: NaN and what lies outside count nowhere. Waits for the device. Errors: bins < 1, low >= high.
Tensor histogram(const Tensor& x, Integer bins, double low, double high);

/// The different elements of a tensor in order, and where each element of it went.
struct Unique {
  Tensor values;   ///< [n], of x's dtype
  Tensor inverse;  ///< i64 with x's sizes: values[inverse] is x
  Tensor counts;   ///< [n], i64
};

/// The different elements of x from the smallest to the largest; each NaN is one of its own. No gradient. Waits for the
/// device, to know how many there are.
Unique unique(const Tensor& x);

/// How often each of 0, 1, … occurs in x (integers, rank 1): i64, as many as the largest element asks for and at least
/// `least`; with `weights` (floating, of x's sizes) their sums. No gradient. Waits for the device. Errors: x is not of
/// integers or has a negative one, other sizes.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, Integer least = 0);

}  // namespace weft
