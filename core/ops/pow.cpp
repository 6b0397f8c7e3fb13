// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pow.h"

#include "core/autograd.h"
#include "core/ops/affine.h"
#include "core/ops/broadcast.h"
#include "core/ops/compare.h"
#include "core/ops/mul.h"
#include "core/ops/unary.h"
#include "core/ops/where.h"
#include "core/promotion.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft {

Tensor pow(const Tensor& x, double exponent) {
  WEFT_CHECK(x.defined(), "pow: expected a tensor, got none");
  return unary("pow", kernels::Unary::pow, x.to(promote_with_number(x.dtype())), {exponent, 0});
}

Tensor pow(const Tensor& left, const Tensor& right) {
  const OpScope scope("pow");
  const auto [a, b, sizes] = operands("pow", left, right);
  if (a.dtype() == DType::boolean || a.dtype() == DType::u8) return pow(a.to(DType::i64), b.to(DType::i64));
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), kernels::Binary::pow, y, broadcast_view(a, sizes), broadcast_view(b, sizes), 1);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  // da = dy b a^(b - 1), db = dy a^b log(a), which has the limit 0 where a = 0 and b >= 0.
  return differentiable(
      y, "pow", {a, b},
      [da, db, saved_a = Saved(a), saved_b = Saved(b), saved_y = db ? Saved(y) : Saved()](const Tensor& dy) {
        const Tensor base = saved_a, exponent = saved_b;
        Grads grads(2);
        if (da) {
          const Tensor slope = mul(exponent, pow(base, affine(exponent, 1, -1)));
          const Tensor zero = Tensor::zeros({}, dy.dtype(), dy.device());
          grads[0] = reduce_to(mul(dy, where(eq(exponent, 0.0), zero, slope)), base.sizes());
        }
        if (db) {
          const Tensor power = saved_y, zero = Tensor::zeros({}, dy.dtype(), dy.device());
          const Tensor slope = where(logical_and(eq(base, 0.0), ge(exponent, 0.0)), zero, mul(power, log(base)));
          grads[1] = reduce_to(mul(dy, slope), exponent.sizes());
        }
        return grads;
      });
}

}  // namespace weft
