// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

// x, y, dy, dx: contiguous [M, C], one floating dtype; weight, bias, dweight, dbias [C]; mean, invstd [M]: f32 (f64 for
// f64 x). Ba et al. 2016.

/// y = (x - mean) invstd weight + bias over the last dimension; weight and bias may be none.
WEFT_KERNEL(layer_norm_forward, const Queue& queue, const View& y, const View& mean, const View& invstd, const View& x,
            const View& weight, const View& bias, double eps);

/// dweight and dbias may be none.
WEFT_KERNEL(layer_norm_backward, const Queue& queue, const View& dx, const View& dweight, const View& dbias,
            const View& dy, const View& x, const View& weight, const View& mean, const View& invstd);

}  // namespace weft::kernels
