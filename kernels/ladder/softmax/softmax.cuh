// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/ladder/ladder.cuh"

namespace weft::kernels::cuda::inline rungs {

/// y[m,c] = exp(x[m,c]) / sum of exp(x[m,:]), row-major f32. The steps subtract the row's maximum first: exp(x) itself
/// overflows from 89 on, and the quotient stays the same.
struct Rows {
  float* y;
  const float* x;
  int M, C;

  /// Errors: shapes that differ; C not a multiple of `multiple`, or above `most`.
  Rows(const char* name, const View& y_, const View& x_, int multiple = 1, int most = 1 << 30)
      : y(y_.as<float>()), x(x_.as<float>()), M(static_cast<int>(x_.sizes[0])), C(static_cast<int>(x_.sizes[1])) {
    WEFT_CHECK(x_.rank == 2 && y_.same_sizes(x_) && x_.is_contiguous() && y_.is_contiguous() &&
                   x_.numel() < (int64_t{1} << 31),
               name, ": expected row-major y[M,C] and x[M,C] of less than 2^31 elements, got ", y_, " and ", x_);
    WEFT_CHECK(C % multiple == 0, name, ": expected C a multiple of ", multiple, ", got ", C);
    WEFT_CHECK(C <= most, name, ": expected rows of at most ", most, " elements, got ", C);
  }
};

}  // namespace weft::kernels::cuda::inline rungs
