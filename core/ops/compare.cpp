// SPDX-License-Identifier: Apache-2.0
#include "core/ops/compare.h"

#include "core/autograd.h"
#include "core/ops/broadcast.h"
#include "core/trace.h"
#include "kernels/binary.h"

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

Tensor eq(const Tensor& a, const Tensor& b) { return compared("eq", kernels::Compare::eq, a, b); }
Tensor eq(const Tensor& a, double b) { return compared("eq", kernels::Compare::eq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compared("ne", kernels::Compare::ne, a, b); }
Tensor ne(const Tensor& a, double b) { return compared("ne", kernels::Compare::ne, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compared("lt", kernels::Compare::lt, a, b); }
Tensor lt(const Tensor& a, double b) { return compared("lt", kernels::Compare::lt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compared("le", kernels::Compare::le, a, b); }
Tensor le(const Tensor& a, double b) { return compared("le", kernels::Compare::le, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compared("gt", kernels::Compare::gt, a, b); }
Tensor gt(const Tensor& a, double b) { return compared("gt", kernels::Compare::gt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compared("ge", kernels::Compare::ge, a, b); }
Tensor ge(const Tensor& a, double b) { return compared("ge", kernels::Compare::ge, a, b); }

Tensor logical_and(const Tensor& a, const Tensor& b) {
  return compared("logical_and", kernels::Compare::logical_and, a, b);
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return compared("logical_or", kernels::Compare::logical_or, a, b);
}

}  // namespace weft
