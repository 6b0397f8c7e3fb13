// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/view.h"

namespace weft::kernels {

/// The sizes of a transform of contracts/fft.h.
struct FftShape {
  int64_t rows, n, columns;
  int64_t half() const { return n / 2 + 1; }
};

/// The sizes that `real` [R, n, C] or `complex` [R, n, C, 2] names, after a check of both views of a transform.
inline FftShape fft_shape(const char* op, const View& y, const View& x, const View& of, bool y_is_half,
                          bool x_is_half) {
  const FftShape shape{of.sizes[0], of.sizes[1], of.sizes[2]};
  const auto fits = [&](const View& view, bool is_half) {
    const bool is_complex = view.rank == 4 && view.sizes[3] == 2;
    return (is_complex || view.rank == 3) && view.sizes[0] == shape.rows && view.sizes[2] == shape.columns &&
           view.sizes[1] == (is_half ? shape.half() : shape.n) && view.is_contiguous();
  };
  WEFT_CHECK(shape.n >= 1 && fits(y, y_is_half) && fits(x, x_is_half) && y.dtype == x.dtype &&
                 (x.dtype == DType::f32 || x.dtype == DType::f64),
             op, ": expected dense f32 or f64 of fitting sizes, got ", y, " and ", x);
  return shape;
}

}  // namespace weft::kernels
