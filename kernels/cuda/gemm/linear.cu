// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/linear.h"

#include <algorithm>

#include "kernels/contracts/matmul.h"
#include "kernels/contracts/reduce.h"
#include "kernels/cuda/gemm/bf16_planes.cuh"
#include "kernels/cuda/gemm/matmul_problem.cuh"
#include "kernels/engines/dispatch.h"

// The gradients of a linear layer as fused matmuls: linear_backward_input's epilogue multiplies by f'
// (gemm_epilogue.cuh, gemm_wgmma_epilogue.cuh); linear_backward_weight's main loop also sums the rows of dy^T from
// shared memory (gemm_fma.cuh, gemm_mma.cuh, gemm_wgmma.cuh).

namespace weft::kernels::cuda {

template <>
void row_sums_matmul_of<float>(const Queue&, const MatmulCall&);
template <>
void row_sums_matmul_of<double>(const Queue&, const MatmulCall&);
template <>
void row_sums_matmul_of<bf16>(const Queue&, const MatmulCall&);
template <>
void row_sums_matmul_of<f16>(const Queue&, const MatmulCall&);

namespace {

constexpr int64_t kIntLimit = int64_t{1} << 31;

/// The matrix, or its transpose, as a batch of size 1.
View lifted(const View& matrix, bool transposed = false) {
  const int rows = transposed ? 1 : 0, columns = 1 - rows;
  View view = matrix;
  view.rank = 3;
  view.sizes = {1, matrix.sizes[rows], matrix.sizes[columns]};
  view.strides = {0, matrix.strides[rows], matrix.strides[columns]};
  return view;
}

}  // namespace

void linear_backward_input(const Queue& queue, const View& dx, const View& dy, const View& w, const View& saved,
                           Activation f) {
  check_linear_backward_input(dx, dy, w, saved, f);
  run_matmul(queue, "linear_backward_input",
             {.y = lifted(dx), .a = lifted(dy), .b = lifted(w), .alpha = 1, .activation = f, .saved = lifted(saved)});
}

void linear_backward_weight(const Queue& queue, const View& dw, const View& db, const View& dy, const View& x) {
  check_linear_backward_weight(dw, db, dy, x);
  WEFT_CHECK(dw.sizes[0] < kIntLimit && dw.sizes[1] < kIntLimit && dy.sizes[0] < kIntLimit,
             "linear_backward_weight: expected sizes below 2^31, got ", dw, " = ", dy, "^T @ ", x);
  if (db.sizes[0] == 0) return;
  if (dw.sizes[1] == 0)  // nothing to multiply
    return reduce(queue, Reduce::sum, View::dense(db.data, db.dtype, {1, db.sizes[0]}), dy);
  MatmulCall call{.y = lifted(dw), .a = lifted(dy, true), .b = lifted(x), .alpha = 1, .row_sums = db};
  if (runs_by_planes(call)) return matmul_by_planes(queue, call);
  const MatmulArguments plain;
  if (vendor::takes(vendor::MatmulCall{queue, call.y, call.a, call.b, call.bias, plain, {}, {}, db})) return;
  call.a.strides[1] = call.b.strides[2] = 1;  // also if there is a single column
  with_dtype<float, double, bf16, f16>(dy.dtype, "linear_backward_weight",
                                       [&]<class T>() { row_sums_matmul_of<T>(queue, call); });
}

}  // namespace weft::kernels::cuda
