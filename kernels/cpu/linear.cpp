// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear.h"

#include <algorithm>

#include "kernels/allocator.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/matmul.h"
#include "kernels/reduce.h"

namespace weft::kernels::cpu {
namespace {

constexpr int64_t kSlabElements = int64_t{1} << 18;  // 1 MiB of f32: half of a core's L2

/// The matrix as a batch of one.
View lifted(const View& matrix) {
  View view = matrix;
  view.rank = 3;
  view.sizes = {1, matrix.sizes[0], matrix.sizes[1]};
  view.strides = {matrix.sizes[0] * matrix.sizes[1], matrix.strides[0], matrix.strides[1]};
  return view;
}

View transposed(View view) {
  std::swap(view.sizes[1], view.sizes[2]);
  std::swap(view.strides[1], view.strides[2]);
  return view;
}

/// Rows first … first + count of a matrix.
View rows_of(View matrix, int64_t first, int64_t count) {
  matrix.data =
      static_cast<char*>(matrix.data) + first * matrix.strides[0] * static_cast<int64_t>(size_of(matrix.dtype));
  matrix.sizes[0] = count;
  return matrix;
}

/// dx = sums f'(saved)
template <Unary f, class C>
void multiply(const View& dx, const View& sums, const View& saved) {
  map<C, C, 2>(dx, {&sums, &saved}, [](C* out, const std::array<const C*, 2>& in, int64_t n) {
    const C *const s = in[0], *const at = in[1];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = unary_gradient<f, VectorMath>(s[i], at[i], C(0), C(0));
  });
}

}  // namespace

void linear_backward_input(const Queue& queue, const View& dx, const View& dy, const View& w, const View& saved,
                           Activation f) {
  check_linear_backward_input(dx, dy, w, saved, f);
  if (dx.numel() == 0) return;
  const int64_t rows = dx.sizes[0], columns = dx.sizes[1];
  const bool narrow = size_of(dx.dtype) == 2;  // sums must not be rounded before f': f32, of so many rows at once
  const int64_t slab = narrow ? std::clamp<int64_t>(kSlabElements / columns, 1, rows) : rows;
  const Workspace unrounded(queue, narrow ? static_cast<size_t>(slab * columns) * sizeof(float) : 0, "linear");
  for (int64_t first = 0; first < rows; first += slab) {
    const int64_t count = std::min(slab, rows - first);
    const View to = rows_of(dx, first, count), at = rows_of(saved, first, count);
    const View sums = narrow ? View::dense(unrounded.data(), DType::f32, {count, columns}) : to;
    matmul(queue, lifted(sums), lifted(rows_of(dy, first, count)), lifted(w), View::none(), {});
    with_compute_type(dx.dtype, [&]<class C>() {
      if constexpr (std::is_floating_point_v<C>) {
        if (f == Activation::relu)
          multiply<Unary::relu, C>(to, sums, at);
        else if (f == Activation::gelu)
          multiply<Unary::gelu, C>(to, sums, at);
        else
          multiply<Unary::gelu_tanh, C>(to, sums, at);
      }
    });
  }
}

void linear_backward_weight(const Queue& queue, const View& dw, const View& db, const View& dy, const View& x) {
  check_linear_backward_weight(dw, db, dy, x);
  if (dw.numel() > 0) matmul(queue, lifted(dw), transposed(lifted(dy)), lifted(x), View::none(), {});
  reduce(queue, Reduce::sum, View::dense(db.data, db.dtype, {1, db.sizes[0]}), dy);
}

}  // namespace weft::kernels::cpu
