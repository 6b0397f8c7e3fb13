// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/conv2d.h"

namespace weft {

/// What the ops of conv2d compute with: checked, of one dtype (under autocast the low one), contiguous, y not written.
struct Conv2dOperands {
  Tensor x, w, bias, y;
};

/// Errors: those of conv2d().
Conv2dOperands conv2d_operands(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options);

}  // namespace weft
