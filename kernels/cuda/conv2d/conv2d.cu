// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/conv2d.h"

#include "kernels/contracts/batch_norm.h"
#include "kernels/contracts/binary.h"
#include "kernels/contracts/conv2d_size.h"
#include "kernels/contracts/fill.h"
#include "kernels/contracts/matmul.h"
#include "kernels/cuda/conv2d/conv2d_shape.cuh"
#include "kernels/cuda/gemm/matmul_call.cuh"
#include "kernels/engines/dispatch.h"

// Selects a convolution's kernel: a matmul for 1x1 filters, the depthwise kernels if each channel has its own filter.
// All others use implicit GEMM (conv2d_forward.cu, conv2d_backward_input.cu, conv2d_backward_weight.cu); on Hopper
// conv2d_sm90.cuh, if TMA can read the operands.

namespace weft::kernels::cuda {

Conv2dShape::Conv2dShape(const char* op, const View& x, const View& w, const View& y, const Conv2dArguments& arguments)
    : N(x.sizes[0]),
      H(x.sizes[1]),
      W(x.sizes[2]),
      C(x.sizes[3]),
      O(w.sizes[0]),
      R(w.sizes[1]),
      S(w.sizes[2]),
      P(y.sizes[1]),
      Q(y.sizes[2]),
      groups(arguments.groups),
      stride(arguments.stride),
      padding(arguments.padding),
      dilation(arguments.dilation) {
  WEFT_CHECK(x.rank == 4 && w.rank == 4 && y.rank == 4 && x.is_contiguous() && w.is_contiguous() && y.is_contiguous(),
             op, ": expected contiguous [N,H,W,C], [O,R,S,C/groups] and [N,P,Q,O], got ", x, ", ", w, " and ", y);
  WEFT_CHECK(groups > 0 && C % groups == 0 && O % groups == 0 && w.sizes[3] * groups == C, op, ": weight ", w,
             " does not fit input ", x, " with groups=", groups);
  WEFT_CHECK(stride.h > 0 && stride.w > 0 && dilation.h > 0 && dilation.w > 0 && padding.h >= 0 && padding.w >= 0, op,
             ": expected positive stride and dilation and no negative padding");
  group_C = C / groups;
  group_O = O / groups;
  WEFT_CHECK(y.sizes[0] == N && y.sizes[3] == O && Size2d(P, Q) == conv2d_output_size({H, W}, {R, S}, arguments), op,
             ": input ", x, " and weight ", w, " do not give ", y);
  constexpr int64_t kLimit = int64_t{1} << 31;
  WEFT_CHECK(N * (H + stride.h) * (W + stride.w) < kLimit && N * P * Q < kLimit && H * W * C < kLimit &&
                 P * Q * O < kLimit && R * S * C < kLimit && R * S * O < kLimit,
             op, ": expected less than 2^31 pixels, and elements per image, got ", x, " and ", y,
             ". Use a smaller batch");
}

namespace {

using vendor::Conv2dCall, vendor::Direction;

/// A [N, H, W, C] view as one matrix [1, N H W, C], or transposed [1, C, N H W].
View pixel_matrix(const View& x, bool transposed = false) {
  const int64_t rows = x.sizes[0] * x.sizes[1] * x.sizes[2], columns = x.sizes[3];
  View matrix = View::dense(x.data, x.dtype, {1, rows, columns});
  if (transposed) {
    std::swap(matrix.sizes[1], matrix.sizes[2]);
    std::swap(matrix.strides[1], matrix.strides[2]);
  }
  return matrix;
}

template <class Body>
void with_type(const View& x, const char* op, Body&& body) {
  with_dtype<float, double, bf16, f16>(x.dtype, op, body);
}

void check_dtypes(const char* op, const View& y, const View& x, const View& w, const View& bias,
                  const Conv2dShape& shape) {
  WEFT_CHECK(x.dtype == w.dtype && x.dtype == y.dtype && (!bias || (bias.dtype == y.dtype && bias.numel() == shape.O)),
             op, ": expected one dtype, got ", y, " = ", x, " * ", w, " + ", bias);
}

/// The forward on Weft's own kernels, with any epilogue.
void own_forward(const Queue& queue, const View& y, const View& x, const View& w, const ChannelEpilogue& epilogue,
                 const Conv2dShape& shape) {
  if (shape.is_matmul() && shape.C > 1) {  // more than one channel: w is then laid out along k
    const View residual = epilogue.residual ? pixel_matrix(epilogue.residual) : View::none();
    return own_matmul(queue, "conv2d_forward",
                      {pixel_matrix(y), View::none(), pixel_matrix(x), pixel_matrix(w, true), epilogue.bias, residual,
                       1, Grad::overwrite, Activation::none, &epilogue});
  }
  with_type(x, "conv2d_forward", [&]<class T>() {
    if (shape.is_depthwise())
      depthwise_forward<T>(queue, y, x, w, epilogue, shape);
    else
      conv2d_forward_gemm<T>(queue, y, x, w, epilogue, shape);
  });
}

}  // namespace

void conv2d_forward(const Queue& queue, const View& y, const View& x, const View& w, const View& bias,
                    Conv2dArguments arguments) {
  const Conv2dShape shape("conv2d_forward", x, w, y, arguments);
  check_dtypes("conv2d_forward", y, x, w, bias, shape);
  if (y.numel() == 0) return;
  if (!shape.is_empty() && vendor::takes(Conv2dCall{Direction::forward, queue, x, w, y, bias, arguments})) return;
  if (shape.is_matmul()) {
    const View columns = View::dense(bias.data, bias.dtype, {shape.O});
    return matmul(queue, pixel_matrix(y), pixel_matrix(x), pixel_matrix(w, true), bias ? columns : View::none(), {});
  }
  ChannelEpilogue epilogue;
  epilogue.bias = bias;
  own_forward(queue, y, x, w, epilogue, shape);
}

void conv2d_norm(const Queue& queue, const View& y, const View& x, const View& w, const View& bias, const View& mean,
                 const View& var, const View& weight, const View& norm_bias, const View& residual,
                 Conv2dNormArguments arguments) {
  const Conv2dShape shape("conv2d_norm", x, w, y, arguments.conv);
  check_dtypes("conv2d_norm", y, x, w, bias, shape);
  check_norm(y, mean, var, weight, norm_bias, residual);
  if (y.numel() == 0) return;
  const vendor::Conv2dNorm norm{mean, var, weight, norm_bias, residual, arguments.eps, arguments.relu};
  const Conv2dCall call{Direction::forward, queue, x, w, y, bias, arguments.conv, &norm};
  if (!shape.is_empty() && vendor::takes(call)) return;
  own_forward(queue, y, x, w, {bias, mean, var, weight, norm_bias, residual, arguments.eps, arguments.relu}, shape);
}

void conv2d_statistics(const Queue& queue, const View& y, const View& part, const View& x, const View& w,
                       const View& bias, Conv2dArguments arguments) {
  const Conv2dShape shape("conv2d_statistics", x, w, y, arguments);
  check_dtypes("conv2d_statistics", y, x, w, bias, shape);
  check_part(y, part);
  if (y.numel() == 0) return;
  const Conv2dCall call{Direction::forward, queue, x, w, y, bias, arguments, nullptr, &part};
  if (!shape.is_empty() && vendor::takes(call)) return;
  const int64_t rows = shape.N * shape.P * shape.Q;
  TileMoments moments(queue, rows, shape.O);
  ChannelEpilogue epilogue;
  epilogue.bias = bias;
  epilogue.moments = &moments;
  own_forward(queue, y, x, w, epilogue, shape);
  if (moments.taken())
    moments.join_into(part);
  else
    batch_norm_statistics(queue, part, View::dense(y.data, y.dtype, {rows, shape.O}));
}

void conv2d_backward_input(const Queue& queue, const View& dx, const View& dy, const View& w, const View& dx_in,
                           Conv2dArguments arguments) {
  const Conv2dShape shape("conv2d_backward_input", dx, w, dy, arguments);
  WEFT_CHECK(dx.dtype == w.dtype && dx.dtype == dy.dtype, "conv2d_backward_input: expected one dtype, got ", dx, " = ",
             dy, " * ", w);
  check_dx_in(dx, dx_in);
  if (dx.numel() == 0) return;
  const auto add_more = [&] {
    if (dx_in) binary_forward(queue, Binary::add, dx, dx, dx_in, 1);
  };
  if (shape.is_empty()) {
    fill(queue, dx, 0);
    return add_more();
  }
  if (vendor::takes(Conv2dCall{Direction::backward_input, queue, dx, w, dy, View::none(), arguments}))
    return add_more();
  if (shape.is_matmul()) {
    const View y = pixel_matrix(dx), a = pixel_matrix(dy), b = pixel_matrix(w), none;
    if (dx_in) return matmul_fused(queue, y, none, a, b, none, pixel_matrix(dx_in), {});
    return matmul(queue, y, a, b, none, {});
  }
  with_type(dx, "conv2d_backward_input", [&]<class T>() {
    if (!shape.is_depthwise()) return conv2d_backward_input_gemm<T>(queue, dx, dy, w, dx_in, shape);
    depthwise_backward_input<T>(queue, dx, dy, w, shape);
    add_more();
  });
}

void conv2d_backward_weight(const Queue& queue, const View& dw, const View& dy, const View& x,
                            Conv2dArguments arguments) {
  const Conv2dShape shape("conv2d_backward_weight", x, dw, dy, arguments);
  WEFT_CHECK(x.dtype == dy.dtype && (dw.dtype == x.dtype || (dw.dtype == DType::f32 && size_of(x.dtype) == 2)),
             "conv2d_backward_weight: expected one dtype (or dw in f32), got ", dw, " = ", dy, " * ", x);
  if (dw.numel() == 0) return;
  if (shape.is_empty()) return fill(queue, dw, 0);
  if (vendor::takes(Conv2dCall{Direction::backward_weight, queue, x, dw, dy, View::none(), arguments})) return;
  if (shape.is_matmul())
    return matmul(queue, pixel_matrix(dw), pixel_matrix(dy, true), pixel_matrix(x), View::none(), {});
  with_type(x, "conv2d_backward_weight", [&]<class T>() {
    if (shape.is_depthwise())
      depthwise_backward_weight<T>(queue, dw, dy, x, shape);
    else
      conv2d_backward_weight_gemm<T>(queue, dw, dy, x, shape);
  });
}

}  // namespace weft::kernels::cuda
