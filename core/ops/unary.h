// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "kernels/unary.h"

namespace weft {

/// What all elementwise functions of one tensor share: check, kernel, gradient. Errors: x is not floating (nor, where
/// the kernel takes them, i64 or i32).
Tensor unary(const char* op, kernels::Unary f, const Tensor& x, kernels::UnaryArguments arguments = {});

}  // namespace weft
