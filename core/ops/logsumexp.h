// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// log(sum over `dims` of e^x) (none named: all), without overflow; -inf where all are -inf. Errors: nothing to sum, not
/// a floating tensor.
Tensor logsumexp(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

}  // namespace weft
