// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

struct VarOptions {
  std::vector<int64_t> dims = {};  ///< none: all
  int64_t correction = 1;          ///< divides by count - correction: 1 is Bessel's, 0 the variance of these numbers
  bool keep_dims = false;
};

/// The mean of squared distances from the mean over `dims`, in two passes. Inf or NaN where count <= correction. Errors:
/// not a floating tensor.
Tensor var(const Tensor& x, const VarOptions& options = {});
/// Its root. The gradient of equal numbers is NaN, as 0 / 0 is.
Tensor std(const Tensor& x, const VarOptions& options = {});

}  // namespace weft
