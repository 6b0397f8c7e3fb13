// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/linear.h"

#include "kernels/contracts/matmul.h"

namespace weft::kernels {
namespace {

bool is_result_of(DType dtype, DType operands) {
  return dtype == operands || (dtype == DType::f32 && size_of(operands) == 2);
}

/// Rows whose elements lie side by side; one column has any stride.
bool has_dense_rows(const View& view) { return view.sizes[1] <= 1 || view.strides[1] == 1; }

}  // namespace

void check_linear_backward_input(const View& dx, const View& dy, const View& w, const View& saved, Activation f) {
  WEFT_CHECK(dx.rank == 2 && dy.rank == 2 && w.rank == 2 && dy.sizes[0] == dx.sizes[0] && w.sizes[0] == dy.sizes[1] &&
                 w.sizes[1] == dx.sizes[1] && dy.dtype == w.dtype,
             "linear_backward_input: expected [M,I] = [M,O] @ [O,I], got ", dx, " = ", dy, " @ ", w);
  WEFT_CHECK(is_laid_out_as(saved, dx), "linear_backward_input: expected saved laid out as ", dx, ", got ", saved);
  WEFT_CHECK(f != Activation::none, "linear_backward_input: expected an activation. Use matmul without one");
}

void check_linear_backward_weight(const View& dw, const View& db, const View& dy, const View& x) {
  WEFT_CHECK(dw.rank == 2 && dy.rank == 2 && x.rank == 2 && dw.sizes[0] == dy.sizes[1] && dw.sizes[1] == x.sizes[1] &&
                 dy.sizes[0] == x.sizes[0] && dy.dtype == x.dtype,
             "linear_backward_weight: expected [O,I] = [M,O]^T @ [M,I], got ", dw, " = ", dy, " @ ", x);
  WEFT_CHECK(db.rank == 1 && db.sizes[0] == dw.sizes[0] && (db.sizes[0] <= 1 || db.strides[0] == 1) &&
                 is_result_of(db.dtype, dy.dtype) && is_result_of(dw.dtype, dy.dtype),
             "linear_backward_weight: expected a dense bias gradient [", dw.sizes[0], "] and both gradients in ",
             dy.dtype, size_of(dy.dtype) == 2 ? " or f32" : "", ", got ", dw, " and ", db);
  WEFT_CHECK(has_dense_rows(dy) && has_dense_rows(x), "linear_backward_weight: expected dense rows, got ", dy, " and ",
             x, " of strides ", dy.strides[1], " and ", x.strides[1], ". Make them contiguous first");
}

}  // namespace weft::kernels
