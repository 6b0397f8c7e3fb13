// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/channel_epilogue.cuh"
#include "kernels/matmul.h"

namespace weft::kernels::cuda {

/// A checked call of the contract, with or without what matmul_fused and linear.h add. channels: the epilogue of a 1x1
/// convolution (its bias and residual are here, too), or nullptr; its a and b both lie along k.
struct MatmulCall {
  View y, pre{}, a, b, bias{}, residual{};
  double alpha = 1;
  Grad grad = Grad::overwrite;
  Activation activation = Activation::none;
  const ChannelEpilogue* channels = nullptr;
  View saved{};     ///< given: y = s f'(saved) instead of f(s)
  View row_sums{};  ///< given: [M], the sums of a's rows
};

/// The call by our own kernels.
void own_matmul(const Queue& queue, const char* name, MatmulCall call);

}  // namespace weft::kernels::cuda
