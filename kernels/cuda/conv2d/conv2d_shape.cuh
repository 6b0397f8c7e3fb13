// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/conv2d.h"
#include "kernels/cuda/conv2d/channel_epilogue.cuh"

namespace weft::kernels::cuda {

/// The sizes of one convolution, with the paper's letters: x [N, H, W, C], w [O, R, S, C / groups], y [N, P, Q, O].
struct Conv2dShape {
  int64_t N, H, W, C, O, R, S, P, Q;
  int64_t groups, group_C, group_O;
  Size2d stride, padding, dilation;

  /// Reads and checks the three views of any of the three directions (activations or their gradients).
  Conv2dShape(const char* op, const View& x, const View& w, const View& y, const Conv2dArguments& arguments);

  bool is_depthwise() const { return groups == C && groups == O; }
  /// A 1x1 filter at every pixel: rows of pixels times a matrix.
  bool is_matmul() const {
    return R == 1 && S == 1 && groups == 1 && stride == Size2d{1, 1} && padding == Size2d{0, 0};
  }
  bool is_empty() const { return N * H * W * C == 0 || N * P * Q * O == 0 || R * S == 0; }
};

// A direction for an element type, as implicit GEMM. Each is defined, for f32, f64, bf16 and f16, in the file of the
// same name.
template <class T>
void conv2d_forward_gemm(const Queue& queue, const View& y, const View& x, const View& w,
                         const ChannelEpilogue& epilogue, const Conv2dShape& shape);
template <class T>
void conv2d_backward_input_gemm(const Queue& queue, const View& dx, const View& dy, const View& w, const View& dx_in,
                                const Conv2dShape& shape);
template <class T>
void conv2d_backward_weight_gemm(const Queue& queue, const View& dw, const View& dy, const View& x,
                                 const Conv2dShape& shape);

// The directions on TMA and wgmma, for bf16 and f16, and the forward for f32 as tf32 (conv2d_<dtype>_sm90.cu). They
// return false if the device has no wgmma or TMA cannot read the operands: groups, channels not a multiple of 8 (f32:
// 4), an input gradient with more than 4 phases, window corners out of TMA's range.
template <class T>
bool conv2d_forward_wgmma(const Queue& queue, const View& y, const View& x, const View& w,
                          const ChannelEpilogue& epilogue, const Conv2dShape& shape);
template <class T>
bool conv2d_backward_input_wgmma(const Queue& queue, const View& dx, const View& dy, const View& w, const View& dx_in,
                                 const Conv2dShape& shape);
template <class T>
bool conv2d_backward_weight_wgmma(const Queue& queue, const View& dw, const View& dy, const View& x,
                                  const Conv2dShape& shape);

// The directions for depthwise convolutions (conv2d_depthwise.cu), without batch statistics.
template <class T>
void depthwise_forward(const Queue& queue, const View& y, const View& x, const View& w, const ChannelEpilogue& epilogue,
                       const Conv2dShape& shape);
template <class T>
void depthwise_backward_input(const Queue& queue, const View& dx, const View& dy, const View& w,
                              const Conv2dShape& shape);
template <class T>
void depthwise_backward_weight(const Queue& queue, const View& dw, const View& dy, const View& x,
                               const Conv2dShape& shape);

}  // namespace weft::kernels::cuda
