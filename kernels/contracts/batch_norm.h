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
/// method: no catastrophic cancellation) are stored to save_mean and save_invstd; running_mean, running_var (or none)
/// are updated by momentum, the variance with the unbiased estimate; y = relu?((x - mean) invstd weight + bias +
/// residual?). weight, bias and residual may be none. mask u8 [M, C / 8] (or none): bit c mod 8 of byte c / 8 says
/// whether y > 0. A mask needs a GPU, a dtype of 16 bits, C a multiple of 8 and memory aligned to 16 bytes.
WEFT_KERNEL(batch_norm_forward, const Queue& queue, const View& y, const View& save_mean, const View& save_invstd,
            const View& running_mean, const View& running_var, const View& x, const View& weight, const View& bias,
            const View& residual, const View& mask, BatchNormArguments arguments);

/// Inference: y = relu?((x - running_mean) / sqrt(running_var + eps) weight + bias + residual?).
WEFT_KERNEL(batch_norm_inference, const Queue& queue, const View& y, const View& x, const View& running_mean,
            const View& running_var, const View& weight, const View& bias, const View& residual,
            BatchNormArguments arguments);

/// Gradients of the training forward. With relu, dy counts only where y > 0. y is the forward's output, or its mask,
/// which has a 16th of the bytes; without relu none.
/// bias: the forward's bias if it had relu and no residual, else none; if given, y > 0 may be recomputed from x without
/// reading y (save_mean and save_invstd must then have the forward's bits). dx and dresidual (each optional) have x's
/// dtype; dweight and dbias (each optional) are the full sums over M.
WEFT_KERNEL(batch_norm_backward, const Queue& queue, const View& dx, const View& dresidual, const View& dweight,
            const View& dbias, const View& dy, const View& x, const View& y, const View& weight, const View& bias,
            const View& save_mean, const View& save_invstd, BatchNormArguments arguments);

// A batch in several parts, one per rank: part [2C + 1] of the statistics' dtype. It holds the means of a part's rows,
// the sums of squared distances from the means (m2), and the number of rows.

/// part = the statistics of x (M > 0).
WEFT_KERNEL(batch_norm_statistics, const Queue& queue, const View& part, const View& x);

/// batch_norm_forward with the combined statistics of parts [n, 2C + 1] (Chan, Golub and LeVeque 1979), which cover x's
/// rows and possibly others: x is read once. total [1] (optional): the number of all rows.
WEFT_KERNEL(batch_norm_of_parts, const Queue& queue, const View& y, const View& save_mean, const View& save_invstd,
            const View& total, const View& running_mean, const View& running_var, const View& x, const View& weight,
            const View& bias, const View& residual, const View& parts, const View& mask, BatchNormArguments arguments);

/// dx = weight invstd (dy - mean_dy - xhat mean_dyx), with mean_dy and mean_dyx [C] the means of dy and dy xhat over
/// the batch; dy, y, bias, relu, dx and dresidual as in batch_norm_backward.
WEFT_KERNEL(batch_norm_backward_input, const Queue& queue, const View& dx, const View& dresidual, const View& mean_dy,
            const View& mean_dyx, const View& dy, const View& x, const View& y, const View& weight, const View& bias,
            const View& save_mean, const View& save_invstd, BatchNormArguments arguments);

}  // namespace weft::kernels
