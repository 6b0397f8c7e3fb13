// SPDX-License-Identifier: Apache-2.0
#include "core/ops/argmax.h"

#include "core/autograd.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/reduce.h"

namespace weft {

Tensor argmax(const Tensor& x, int64_t dim, bool keep_dims) {
  WEFT_CHECK(x.defined(), "argmax: expected a tensor, got none");
  const OpScope scope("argmax");
  const NoGrad no_grad;
  const int at = wrap_dim("argmax", dim, x.dim());
  WEFT_CHECK(x.size(at) > 0, "argmax: nothing to choose from in dimension ", dim, " of ", x);
  Shape kept = x.sizes();
  kept[at] = 1;
  const Tensor y = Tensor::empty(kept, DType::i64, x.device());
  const bool small = x.dtype() == DType::boolean || x.dtype() == DType::u8;
  kernels::argmax(y.queue(), y, small ? x.to(DType::i64) : x, at);
  return keep_dims ? y : y.squeeze(at);
}

Tensor argmin(const Tensor& x, int64_t dim, bool keep_dims) {
  WEFT_CHECK(x.defined(), "argmin: expected a tensor, got none");
  const NoGrad no_grad;
  return argmax(neg(x), dim, keep_dims);
}

}  // namespace weft
