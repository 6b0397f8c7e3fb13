// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// A contiguous tensor [..., C] as the matrix [M, C] that norm kernels take; none stays none.
inline kernels::View rows_of(const Tensor& x) {
  if (!x.defined()) return kernels::View::none();
  const int64_t columns = x.size(-1);
  int64_t rows = 1;
  for (int d = 0; d + 1 < x.dim(); ++d) rows *= x.size(d);
  return kernels::View::dense(x.raw_data(), x.dtype(), {rows, columns});
}

}  // namespace weft
