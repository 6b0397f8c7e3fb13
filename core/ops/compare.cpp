// SPDX-License-Identifier: Apache-2.0
#include "core/ops/compare.h"

#include "core/autograd.h"
#include "core/ops/affine.h"
#include "core/ops/broadcast.h"
#include "core/trace.h"

namespace weft {
namespace {

Tensor compared(const char* op, kernels::Compare f, const Tensor& left, const Tensor& right) {
  const OpScope scope(op);
  const NoGrad no_grad;
  const auto [a, b, sizes] = operands(op, left, right);
  Tensor y = Tensor::empty(sizes, DType::boolean, a.device());
  kernels::compare(y.queue(), f, y, broadcast_view(a, sizes), broadcast_view(b, sizes));
  return y;
}

// The number takes the tensor's dtype when it is floating; an integer meets it in f64, exactly up to 2^53.
Tensor compared(const char* op, kernels::Compare f, const Tensor& a, double b) {
  WEFT_CHECK(a.defined(), op, ": expected a tensor, got none");
  return compared(op, f, a, Tensor::full({}, b, a.is_floating() ? a.dtype() : DType::f64, a.device()));
}

}  // namespace

#define WEFT_LOGICAL(name, ...) \
  Tensor name(const Tensor& a, const Tensor& b) { return compared(#name, kernels::Compare::name, a, b); }
#define WEFT_COMPARISON(name, ...) \
  WEFT_LOGICAL(name)               \
  Tensor name(const Tensor& a, double b) { return compared(#name, kernels::Compare::name, a, b); }
WEFT_COMPARE_TABLE(WEFT_COMPARISON, WEFT_LOGICAL)
#undef WEFT_COMPARISON
#undef WEFT_LOGICAL

Tensor isnan(const Tensor& x) { return compared("isnan", kernels::Compare::ne, x, x); }

Tensor isfinite(const Tensor& x) {
  WEFT_CHECK(x.defined(), "isfinite: expected a tensor, got none");
  if (!x.is_floating()) return compared("isfinite", kernels::Compare::eq, x, x);
  const NoGrad no_grad;  // x 0 is NaN for NaN and infinities only
  return compared("isfinite", kernels::Compare::eq, affine(x, 0, 0), 0.0);
}

}  // namespace weft
