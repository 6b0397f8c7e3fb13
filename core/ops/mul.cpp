// SPDX-License-Identifier: Apache-2.0
#include "core/ops/mul.h"

#include "core/autograd.h"
#include "core/ops/affine.h"
#include "core/ops/broadcast.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft {

Tensor mul(const Tensor& left, const Tensor& right) {
  const OpScope scope("mul");
  const auto [a, b, sizes] = operands("mul", left, right);
  if (a.dtype() == DType::boolean || a.dtype() == DType::u8) return mul(a.to(DType::i64), b.to(DType::i64));
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), kernels::Binary::mul, y, broadcast_view(a, sizes), broadcast_view(b, sizes), 1);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  return differentiable(y, "mul", {a, b},
                        [a_sizes = a.sizes(), b_sizes = b.sizes(), a = db ? Saved(a) : Saved(),
                         b = da ? Saved(b) : Saved()](const Tensor& dy) {
                          Grads grads(2);
                          if (b) grads[0] = reduce_to(mul(dy, b), a_sizes);
                          if (a) grads[1] = reduce_to(mul(dy, a), b_sizes);
                          return grads;
                        });
}

Tensor mul(const Tensor& a, double b) { return affine(a, b, 0); }

}  // namespace weft
