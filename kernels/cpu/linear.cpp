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
  const bool narrow = size_of(dx.dtype) == 2;  // sums must not be rounded before f'
  const Workspace unrounded(queue, narrow ? static_cast<size_t>(dx.numel()) * sizeof(float) : 0, "linear");
  View sums = dx;
  if (narrow) sums = View::dense(unrounded.data(), DType::f32, {dx.sizes[0], dx.sizes[1]});
  matmul(queue, lifted(sums), lifted(dy), lifted(w), View::none(), {});
  with_compute_type(dx.dtype, [&]<class C>() {
    if constexpr (std::is_floating_point_v<C>) {
      if (f == Activation::relu)
        multiply<Unary::relu, C>(dx, sums, saved);
      else if (f == Activation::gelu)
        multiply<Unary::gelu, C>(dx, sums, saved);
      else
        multiply<Unary::gelu_tanh, C>(dx, sums, saved);
    }
  });
}

void linear_backward_weight(const Queue& queue, const View& dw, const View& db, const View& dy, const View& x) {
  check_linear_backward_weight(dw, db, dy, x);
  if (dw.numel() > 0) matmul(queue, lifted(dw), transposed(lifted(dy)), lifted(x), View::none(), {});
  reduce(queue, Reduce::sum, View::dense(db.data, db.dtype, {1, db.sizes[0]}), dy);
}

}  // namespace weft::kernels::cpu
