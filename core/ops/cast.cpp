// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/copy.h"

namespace weft {
namespace {

struct CastNode : Node {
  explicit CastNode(DType from_dtype) : from(from_dtype) {}
  bool hands_on(DType of_dy) const override { return of_dy == from; }
  DType from;
};

}  // namespace

Tensor recorded_cast(Tensor y, const Tensor& x) {
  if (!wants_gradient(x)) return y;
  auto backward = [from = x.dtype()](const Tensor& dy) { return Grads{cast(dy, from)}; };
  using Recorded = autograd_detail::LambdaNode<decltype(backward), CastNode>;
  autograd_detail::connect(y, Ref<Node>(new Recorded(backward, x.dtype())), "cast", &x, 1);
  return y;
}

Tensor cast(const Tensor& x, DType dtype) {
  WEFT_CHECK(x.defined(), "cast: expected a tensor, got none");
  if (x.dtype() == dtype) return x;
  const OpScope scope("cast");
  Tensor y = Tensor::empty(x.sizes(), dtype, x.device());
  kernels::copy(y.queue(), y, x);
  return is_floating(dtype) ? recorded_cast(y, x) : y;
}

Tensor Tensor::to(DType dtype) const { return cast(*this, dtype); }

}  // namespace weft
