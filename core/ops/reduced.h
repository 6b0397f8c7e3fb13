// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "kernels/reduce.h"

namespace weft {

/// The dimensions that a reduction runs over, and what is left.
struct Reduced {
  Shape kept;     ///< x's sizes with 1 in the reduced dimensions
  Shape dropped;  ///< without them
  int64_t count;  ///< elements per result
};
/// `dims` empty means all. Errors: a dimension out of range or named twice.
Reduced reduced(const char* op, const Tensor& x, const std::vector<int64_t>& dims);

/// Runs the kernel; the result has sizes `kept`.
Tensor reduce(kernels::Reduce f, const Tensor& x, const Reduced& to);

}  // namespace weft
