// SPDX-License-Identifier: Apache-2.0
#include "core/ops/multiply.h"

#include <algorithm>

#include "core/autograd.h"
#include "kernels/contracts/linear.h"
#include "kernels/contracts/matmul.h"
#include "kernels/runtime/variants.h"

namespace weft {
namespace {

/// The view with rank 3 and a leading dimension that BLAS would accept; false where only a copy has one.
bool as_matrices(const Tensor& x, kernels::View& view) {
  view = x;
  if (view.rank == 2) {
    view.rank = 3;
    view.sizes = {1, view.sizes[0], view.sizes[1]};
    view.strides = {0, view.strides[0], view.strides[1]};
  }
  const int64_t rows = view.sizes[1], columns = view.sizes[2];
  int64_t &down = view.strides[1], &right = view.strides[2];
  if (right == 1 || columns == 1) {
    right = 1;
    if (rows <= 1) down = std::max<int64_t>(columns, 1);
    return down >= columns;
  }
  if (down == 1 || rows == 1) {
    down = 1;
    return right >= rows;
  }
  return false;
}

/// Calls body(y, a, b) with views that the kernel takes.
template <class Body>
void with_matrices(const Tensor& y, const Tensor& a, const Tensor& b, Body&& body) {
  const NoGrad no_grad;
  Tensor left = a, right = b;
  kernels::View a_view, b_view, y_view;
  if (!as_matrices(left, a_view)) as_matrices(left = left.clone(), a_view);
  if (!as_matrices(right, b_view)) as_matrices(right = right.clone(), b_view);
  as_matrices(y, y_view);
  body(y_view, a_view, b_view);
}

}  // namespace

void multiply_into(const Tensor& y, const Tensor& a, const Tensor& b, const Tensor& bias, kernels::Grad grad) {
  with_matrices(y, a, b, [&](const kernels::View& y_view, const kernels::View& a_view, const kernels::View& b_view) {
    kernels::matmul(y.queue(), y_view, a_view, b_view, bias, {.grad = grad});
  });
}

void multiply_fused_into(const Tensor& y, const Tensor& pre, const Tensor& a, const Tensor& b, const Tensor& bias,
                         kernels::Activation activation) {
  with_matrices(y, a, b, [&](const kernels::View& y_view, const kernels::View& a_view, const kernels::View& b_view) {
    kernels::View kept = kernels::View::none();
    if (pre.defined()) as_matrices(pre, kept);
    kernels::matmul_fused(y.queue(), y_view, kept, a_view, b_view, bias, kernels::View::none(),
                          {.activation = activation});
  });
}

Tensor multiply_backward(const Tensor& dy, const Tensor& w, const Tensor& saved, kernels::Activation f) {
  const NoGrad no_grad;
  const Tensor dx = Tensor::empty({dy.size(0), w.size(1)}, saved.dtype(), dy.device());
  const auto readable = [](const Tensor& x) {
    kernels::View view;
    return as_matrices(x, view) ? x : x.clone();
  };
  kernels::linear_backward_input(dy.queue(), dx, readable(dy), readable(w), saved.reshape(dx.sizes()), f);
  return dx;
}

void multiply_rows_into(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x) {
  const NoGrad no_grad;
  const auto by_rows = [](const Tensor& t) {
    const kernels::View view = t;
    const bool fits = (view.sizes[1] <= 1 || view.strides[1] == 1) &&
                      (view.sizes[0] <= 1 || view.strides[0] >= std::max<int64_t>(view.sizes[1], 1));
    return fits ? t : t.clone();
  };
  kernels::linear_backward_weight(dy.queue(), dw, db, by_rows(dy), by_rows(x));
}

Tensor multiply(const Tensor& a, const Tensor& b, const Tensor& bias, DType dtype, bool may_pitch) {
  constexpr int64_t kRun = 8, kBroad = 256;  // narrower results are small, and their gap would cost other ops more
  const int64_t columns = b.size(-1), pitch = (columns + kRun - 1) / kRun * kRun;
  const bool gaps = may_pitch && a.dim() == 2 && pitch != columns && columns >= kBroad && size_of(dtype) == 2 &&
                    a.device().kind == DeviceKind::cuda && !kernels::takes(kernels::Variant::dense_logits);
  const Tensor y = gaps           ? Tensor::empty({a.size(0), pitch}, dtype, a.device()).slice(1, 0, columns)
                   : a.dim() == 2 ? Tensor::empty({a.size(0), columns}, dtype, a.device())
                                  : Tensor::empty({a.size(0), a.size(1), columns}, dtype, a.device());
  multiply_into(y, a, b, bias);
  return y;
}

}  // namespace weft
