// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

// x, residual, sum, y, dy, dx, dx_in: contiguous [M, C], one floating dtype; on CUDA the residual and y may have one 16-bit
// dtype beside an x of f32. weight, bias, dweight, dbias [C]; mean, invstd [M]: f32 (f64 for f64 x). Ba et al.
// 2016.

/// y = (x - mean) invstd weight + bias over the last dimension; weight and bias may be none. With a residual (else
/// none, and sum with it) the input is sum = x + residual, rounded to its dtype and written in the same pass.
WEFT_KERNEL(layer_norm_forward, const Queue& queue, const View& y, const View& mean, const View& invstd,
            const View& sum, const View& x, const View& residual, const View& weight, const View& bias, double eps);

/// dx = the gradient with respect to the input + dx_in: the input's gradient from elsewhere, added after
/// the former is rounded, or none. dweight and dbias may be none. x: the normalised input (sum, if there was a
/// residual).
WEFT_KERNEL(layer_norm_backward, const Queue& queue, const View& dx, const View& dweight, const View& dbias,
            const View& dy, const View& x, const View& weight, const View& mean, const View& invstd, const View& dx_in);

// x, residual, sum, y, dy, dx, dx_in: as above; weight, dweight [C]; invrms [M]: f32 (f64 for f64 x). Zhang and
// Sennrich 2019.

/// y = x invrms weight, invrms = 1 / sqrt(mean(x^2) + eps) over the last dimension; weight may be none. With a residual
/// (else none, and sum with it) the input is sum = x + residual, rounded to its dtype and written in the same pass.
WEFT_KERNEL(rms_norm_forward, const Queue& queue, const View& y, const View& invrms, const View& sum, const View& x,
            const View& residual, const View& weight, double eps);

/// dx = the gradient with respect to the input + dx_in: the input's gradient from elsewhere, added after
/// the former is rounded, or none. dweight may be none. x: the normalised input (sum, if there was a residual).
WEFT_KERNEL(rms_norm_backward, const Queue& queue, const View& dx, const View& dweight, const View& dy, const View& x,
            const View& weight, const View& invrms, const View& dx_in);

}  // namespace weft::kernels
