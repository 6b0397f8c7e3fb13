// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include "core/autograd.h"
#include "core/ops/affine.h"
#include "core/ops/random_blocks.h"
#include "core/trace.h"

namespace weft {
namespace {

Tensor masked(const Tensor& x, const Tensor& state, kernels::RandomArguments random, double p) {
  const Tensor dense = x.contiguous(), y = empty_like(x);
  kernels::dropout(y.queue(), y, dense, state, random, p);
  return y;
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training) {
  const OpScope scope("dropout");
  WEFT_CHECK(x.defined() && x.is_floating(), "dropout: expected a floating tensor, got ", x);
  WEFT_CHECK(p >= 0 && p <= 1, "dropout: expected p in [0, 1], got ", p);
  if (!training || p == 0) return x;
  if (p == 1) return affine(x, 0, 0);
  const Tensor state = dropout_state(x.device());
  const kernels::RandomArguments random = draw(x.device(), x.numel(), x.dtype());
  return differentiable(masked(x, state, random, p), "dropout", {x},
                        [=](const Tensor& dy) { return Grads{masked(dy, state, random, p)}; });
}

}  // namespace weft
