// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// The first k of each row of x [..., n] in order, k <= n: values [..., k] and their indices in x, [..., k] (i64).
/// Stable: equal elements keep their order. NaN is larger than every number, all NaN are equal, and so are 0 and -0.
/// Contiguous; any dtype; n < 2^31.
WEFT_KERNEL(sort, const Queue& queue, const View& values, const View& indices, const View& x, bool descending);

/// y [rows, m] (i64): how many elements of a row of `sorted` [rows, n] are less than values [rows, m] in sort()'s order;
/// `right`: less or equal. One row of `sorted` serves all rows. Contiguous; any dtype, one for both.
WEFT_KERNEL(search_sorted, const Queue& queue, const View& y, const View& sorted, const View& values, bool right);

/// Checks the arguments of search_sorted; both devices call it.
inline void check_search_sorted(const View& y, const View& sorted, const View& values) {
  WEFT_CHECK(sorted.rank == 2 && values.rank == 2 && y.same_sizes(values) && y.dtype == DType::i64 &&
                 sorted.dtype == values.dtype && (sorted.sizes[0] == 1 || sorted.sizes[0] == values.sizes[0]) &&
                 y.is_contiguous() && sorted.is_contiguous() && values.is_contiguous(),
             "search_sorted: expected dense values and i64 positions of equal sizes, got ", y, ", ", sorted, " and ",
             values);
}

}  // namespace weft::kernels
