// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/batch_norm.h"
#include "core/ops/conv2d.h"

namespace weft {

/// batch_norm(conv2d(x, w, bias, conv), weight, shift, running_mean, running_var, norm) in evaluation. Where no
/// gradient is recorded this is one kernel, which normalises the sums before they are rounded to y's dtype. Errors:
/// those of both; norm.training.
Tensor conv2d_norm(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& conv,
                   const Tensor& weight, const Tensor& shift, const Tensor& running_mean, const Tensor& running_var,
                   const BatchNormOptions& norm);

}  // namespace weft
