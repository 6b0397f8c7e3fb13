// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/matmul.h"
#include "kernels/cuda/conv2d/channel_epilogue.cuh"

namespace weft::kernels::cuda {

/// A checked call of the contract, including the options of matmul_fused and linear.h. channels: the epilogue of a 1x1
/// convolution, or nullptr; its bias and residual are also members here, and its a and b are laid out along k.
struct MatmulCall {
  View y, pre{}, a, b, bias{}, residual{};
  double alpha = 1;
  Grad grad = Grad::overwrite;
  Activation activation = Activation::none;
  const ChannelEpilogue* channels = nullptr;
  View saved{};     ///< if given: y = s f'(saved) instead of f(s)
  View row_sums{};  ///< if given: [M], receives the sums of a's rows
};

/// Elements from row to row of a matmul's result.
inline int64_t y_pitch(const View& y) { return y.sizes[1] > 1 ? y.strides[1] : y.sizes[2]; }

/// Runs the call on Weft's own kernels.
void own_matmul(const Queue& queue, const char* name, MatmulCall call);

}  // namespace weft::kernels::cuda
