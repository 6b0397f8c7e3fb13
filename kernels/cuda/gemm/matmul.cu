// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/bf16_planes.cuh"
#include "kernels/cuda/gemm/matmul_problem.cuh"
#include "kernels/engines/dispatch.h"

// The call path of a matmul: this file checks and dispatches the dtype; matmul_<dtype>.cu the layouts;
// matmul_problem.cuh describes operands; gemm_fma.cuh (f32, f64) or gemm_mma.cuh (bf16, f16, f32 as tf32: tensor cores)
// has the main loop. On Hopper bf16, f16 and tf32 run through matmul_<dtype>_sm90.cu on gemm_wgmma.cuh, unless TMA
// cannot read the operands; tf32 needs both operands along k. bf16_planes.cu runs f32 on the kernels of bf16.

namespace weft::kernels::cuda {

template <>
void matmul_of<float>(const Queue&, const MatmulCall&);
template <>
void matmul_of<double>(const Queue&, const MatmulCall&);
template <>
void matmul_of<bf16>(const Queue&, const MatmulCall&);
template <>
void matmul_of<f16>(const Queue&, const MatmulCall&);

namespace {

constexpr int64_t kIntLimit = int64_t{1} << 31;

void check_operand(const char* kernel, const char* name, const View& view) {
  WEFT_CHECK(view.strides[1] == 1 || view.strides[2] == 1 || view.sizes[1] <= 1 || view.sizes[2] <= 1, kernel, ": ",
             name, ' ', view, " has strides ", view.strides[1], ", ", view.strides[2],
             "; expected 1 for one of the last two dimensions. Make it contiguous first");
}

/// A dimension of size 1 may have any stride: replaces the stride so that the matrix's layout is recognised.
View settled(View view) {
  if (view.strides[1] != 1 && view.strides[2] != 1) {
    if (view.sizes[2] <= 1)
      view.strides[2] = 1;
    else
      view.strides[1] = 1;
  }
  return view;
}

/// `name`: the contract's name, for messages.
void check(const char* name, const MatmulCall& call) {
  const View &y = call.y, &a = call.a, &b = call.b, &bias = call.bias;
  WEFT_CHECK(y.rank == 3 && a.rank == 3 && b.rank == 3 && a.dtype == b.dtype && a.sizes[0] == y.sizes[0] &&
                 b.sizes[0] == y.sizes[0] && a.sizes[1] == y.sizes[1] && b.sizes[2] == y.sizes[2] &&
                 a.sizes[2] == b.sizes[1],
             name, ": expected [B,M,N] = [B,M,K] @ [B,K,N], got ", y, " = ", a, " @ ", b);
  WEFT_CHECK(y.dtype == a.dtype || (y.dtype == DType::f32 && size_of(a.dtype) == 2), name, ": expected the result in ",
             a.dtype, size_of(a.dtype) == 2 ? " or f32" : "", ", got ", y);
  WEFT_CHECK(!bias || (bias.rank == 1 && bias.sizes[0] == y.sizes[2] && (bias.sizes[0] <= 1 || bias.strides[0] == 1) &&
                       (bias.dtype == a.dtype || (bias.dtype == DType::f32 && size_of(a.dtype) == 2))),
             name, ": expected a dense bias [", y.sizes[2], "] of the operands' dtype, got ", bias);
  WEFT_CHECK((y.sizes[2] <= 1 || y.strides[2] == 1) && y_pitch(y) >= y.sizes[2], name,
             ": expected a result with dense rows, got ", y, " of strides ", y.strides[1], ", ", y.strides[2]);
  const auto fits = [&](const View& view) { return !view || is_laid_out_as(view, y); };
  WEFT_CHECK(fits(call.pre) && fits(call.residual), name, ": expected pre and residual laid out as ", y, ", got ",
             call.pre, " and ", call.residual);
  WEFT_CHECK(y.sizes[1] < kIntLimit && y.sizes[2] < kIntLimit && a.sizes[2] < kIntLimit, name,
             ": expected sizes below 2^31, got ", y, " = ", a, " @ ", b);
  check_operand(name, "a", a);
  check_operand(name, "b", b);
}

}  // namespace

void own_matmul(const Queue& queue, const char* name, MatmulCall call) {
  call.a = settled(call.a);
  call.b = settled(call.b);
  with_dtype<float, double, bf16, f16>(call.a.dtype, name, [&]<class T>() { matmul_of<T>(queue, call); });
}

void run_matmul(const Queue& queue, const char* name, const MatmulCall& call) {
  const View &y = call.y, &a = call.a, &b = call.b, &bias = call.bias;
  check(name, call);
  if (y.numel() == 0) return;
  if (runs_by_planes(call)) return matmul_by_planes(queue, call);
  const MatmulArguments arguments{call.alpha, call.grad};
  const bool keeps_more = call.saved || call.pre;  // libraries keep a mask of it at most
  if (!keeps_more && vendor::takes(vendor::MatmulCall{queue, y, a, b, bias, arguments, call.activation, call.residual}))
    return;
  own_matmul(queue, name, call);
}

void matmul(const Queue& queue, const View& y, const View& a, const View& b, const View& bias,
            MatmulArguments arguments) {
  run_matmul(queue, "matmul", {.y = y, .a = a, .b = b, .bias = bias, .alpha = arguments.alpha, .grad = arguments.grad});
}

void matmul_fused(const Queue& queue, const View& y, const View& pre, const View& a, const View& b, const View& bias,
                  const View& residual, MatmulFusedArguments arguments) {
  run_matmul(queue, "matmul_fused",
             {y, pre, a, b, bias, residual, arguments.alpha, Grad::overwrite, arguments.activation});
}

}  // namespace weft::kernels::cuda
