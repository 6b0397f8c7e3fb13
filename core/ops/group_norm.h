// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The norm of each image and each of `groups` runs of channels of x [N, ..., C]: (x - mean) / sqrt(var + eps) weight +
/// bias, weight and bias [C] (Wu and He 2018). Groups of one channel are instance norm. weight and bias are f32 (f64 for
/// f64 x), or undefined. Errors: channels that do not divide into groups, sizes or dtypes that do not fit.
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

}  // namespace weft
