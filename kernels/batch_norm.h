// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

struct BatchNormArguments {
  double eps = 1e-5;
  double momentum = 0.1;  ///< weight of the batch in the running statistics
  bool relu = false;      ///< y = max(0, …) fused after the norm and the residual
};

// x, y, residual, dy, dx: contiguous [M, C] (M = N H W of an NHWC tensor), one floating dtype. Statistics, weight, bias
// and their gradients: [C], f32 (f64 for f64 x). Ioffe and Szegedy 2015.

/// Training: mean and 1/sqrt(var + eps) of the batch per channel (biased variance, computed with a shifted or two-pass
/// method: no catastrophic cancellation) go to save_mean and save_invstd; running_mean, running_var (none: not kept)
/// move by momentum, the variance with the unbiased estimate; y = relu?((x - mean) invstd weight + bias + residual?).
/// weight, bias and residual may be none.
WEFT_KERNEL(batch_norm_forward, const Queue& queue, const View& y, const View& save_mean, const View& save_invstd,
            const View& running_mean, const View& running_var, const View& x, const View& weight, const View& bias,
            const View& residual, BatchNormArguments arguments);

/// Inference: y = relu?((x - running_mean) / sqrt(running_var + eps) weight + bias + residual?).
WEFT_KERNEL(batch_norm_inference, const Queue& queue, const View& y, const View& x, const View& running_mean,
            const View& running_var, const View& weight, const View& bias, const View& residual,
            BatchNormArguments arguments);

/// Gradients of the training forward. With relu, dy counts only where y > 0 (y is the forward's output, else none).
/// dx and dresidual (none: not wanted) have x's dtype; dweight and dbias (none: not wanted) are the full sums over M.
WEFT_KERNEL(batch_norm_backward, const Queue& queue, const View& dx, const View& dresidual, const View& dweight,
            const View& dbias, const View& dy, const View& x, const View& y, const View& weight, const View& save_mean,
            const View& save_invstd, BatchNormArguments arguments);

}  // namespace weft::kernels
