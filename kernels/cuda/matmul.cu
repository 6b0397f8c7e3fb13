// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/matmul_problem.cuh"
#include "kernels/vendor/dispatch.h"

// The way of a matmul: here the checks and the dtype; matmul_<dtype>.cu the layouts; matmul_problem.cuh the operands;
// gemm_fma.cuh (f32, f64) or gemm_mma.cuh (bf16, f16: tensor cores) the main loop.

namespace weft::kernels::WEFT_DEVICE {

template <>
void matmul_of<float>(const Queue&, const View&, const View&, const View&, const View&, const MatmulArguments&);
template <>
void matmul_of<double>(const Queue&, const View&, const View&, const View&, const View&, const MatmulArguments&);
template <>
void matmul_of<bf16>(const Queue&, const View&, const View&, const View&, const View&, const MatmulArguments&);
template <>
void matmul_of<f16>(const Queue&, const View&, const View&, const View&, const View&, const MatmulArguments&);

namespace {

constexpr int64_t kIntLimit = int64_t{1} << 31;

void check_operand(const char* name, const View& view) {
  WEFT_CHECK(view.strides[1] == 1 || view.strides[2] == 1 || view.sizes[1] <= 1 || view.sizes[2] <= 1, "matmul: ", name,
             ' ', view, " has strides ", view.strides[1], ", ", view.strides[2],
             "; expected 1 for one of the last two dimensions. Make it contiguous first");
}

/// A dimension of size 1 may have any stride: give it one that tells how the matrix lies.
View settled(View view) {
  if (view.strides[1] != 1 && view.strides[2] != 1) {
    if (view.sizes[2] <= 1)
      view.strides[2] = 1;
    else
      view.strides[1] = 1;
  }
  return view;
}

}  // namespace

void matmul(const Queue& queue, const View& y, const View& a, const View& b, const View& bias,
            MatmulArguments arguments) {
  WEFT_CHECK(y.rank == 3 && a.rank == 3 && b.rank == 3 && a.dtype == b.dtype && a.sizes[0] == y.sizes[0] &&
                 b.sizes[0] == y.sizes[0] && a.sizes[1] == y.sizes[1] && b.sizes[2] == y.sizes[2] &&
                 a.sizes[2] == b.sizes[1],
             "matmul: expected [B,M,N] = [B,M,K] @ [B,K,N], got ", y, " = ", a, " @ ", b);
  WEFT_CHECK(y.dtype == a.dtype || (y.dtype == DType::f32 && size_of(a.dtype) == 2), "matmul: expected the result in ",
             a.dtype, size_of(a.dtype) == 2 ? " or f32" : "", ", got ", y);
  WEFT_CHECK(!bias || (bias.rank == 1 && bias.sizes[0] == y.sizes[2] && (bias.sizes[0] <= 1 || bias.strides[0] == 1) &&
                       (bias.dtype == a.dtype || (bias.dtype == DType::f32 && size_of(a.dtype) == 2))),
             "matmul: expected a dense bias [", y.sizes[2], "] of the operands' dtype, got ", bias);
  WEFT_CHECK(y.sizes[1] < kIntLimit && y.sizes[2] < kIntLimit && a.sizes[2] < kIntLimit,
             "matmul: expected sizes below 2^31, got ", y, " = ", a, " @ ", b);
  check_operand("a", a);
  check_operand("b", b);
  if (y.numel() == 0) return;
  if (vendor::matmul(queue, y, a, b, bias, arguments)) return;
  with_dtype<float, double, bf16, f16>(
      a.dtype, "matmul", [&]<class T>() { matmul_of<T>(queue, y, settled(a), settled(b), bias, arguments); });
}

}  // namespace weft::kernels::WEFT_DEVICE
