// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cumsum.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/cumsum.h"

namespace weft {
namespace {

Tensor scan(const Tensor& x, int dim, bool reverse) {
  const NoGrad no_grad;
  const Tensor rows = x.transpose(dim, -1).contiguous();
  const Tensor y = Tensor::empty(rows.sizes(), x.is_floating() ? x.dtype() : DType::i64, x.device());
  kernels::cumsum(y.queue(), y, rows, reverse);
  return y.transpose(dim, -1);
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t dim) {
  WEFT_CHECK(x.defined() && x.dim() >= 1, "cumsum: expected a tensor of at least one dimension, got ", x);
  const OpScope scope("cumsum");
  const int at = wrap_dim("cumsum", dim, x.dim());
  const Tensor y = scan(x, at, false);
  if (!wants_gradient(x)) return y;
  // x[i] is a term of y[i], y[i + 1], …
  return differentiable(y, "cumsum", {x}, [at](const Tensor& dy) { return Grads{scan(dy, at, true)}; });
}

}  // namespace weft
