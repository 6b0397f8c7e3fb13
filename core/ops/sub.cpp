// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sub.h"

#include "core/ops/add.h"
#include "core/ops/affine.h"

namespace weft {

Tensor sub(const Tensor& a, const Tensor& b) { return add(a, b, -1); }
Tensor sub(const Tensor& a, double b) { return affine(a, 1, -b); }
Tensor sub(double a, const Tensor& b) { return affine(b, -1, a); }

}  // namespace weft
