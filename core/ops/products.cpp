// SPDX-License-Identifier: Apache-2.0
#include "core/ops/products.h"

#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/trace.h"

namespace weft {
namespace {

void check_ranks(const char* op, const Tensor& a, const Tensor& b, int rank, const char* sizes) {
  WEFT_CHECK(a.defined() && b.defined() && a.dim() == rank && b.dim() == rank, op, ": expected ", sizes, ", got ", a,
             " and ", b);
}

}  // namespace

Tensor dot(const Tensor& a, const Tensor& b) {
  const OpScope scope("dot");
  check_ranks("dot", a, b, 1, "vectors [N]");
  WEFT_CHECK(a.size(0) == b.size(0), "dot: expected vectors of one size, got ", a, " and ", b);
  return a.is_floating() ? matmul(a, b) : sum(mul(a, b));
}

Tensor outer(const Tensor& a, const Tensor& b) {
  const OpScope scope("outer");
  check_ranks("outer", a, b, 1, "vectors [N] and [M]");
  return mul(a.unsqueeze(1), b);
}

Tensor kron(const Tensor& a, const Tensor& b) {
  const OpScope scope("kron");
  check_ranks("kron", a, b, 2, "matrices [M, N] and [P, Q]");
  const Tensor blocks = mul(a.unsqueeze(1).unsqueeze(3), b.unsqueeze(1));  // [M, 1, N, 1] [P, 1, Q]
  return blocks.reshape({a.size(0) * b.size(0), a.size(1) * b.size(1)});
}

Tensor cross(const Tensor& left, const Tensor& right, Integer dim) {
  const OpScope scope("cross");
  WEFT_CHECK(left.defined() && right.defined(), "cross: expected two tensors, got ", left, " and ", right);
  const Shape sizes = broadcast_shapes("cross", left.sizes(), right.sizes());
  const Tensor a = left.expand(sizes), b = right.expand(sizes);
  WEFT_CHECK(a.size(dim) == 3, "cross: expected 3 elements along dimension ", int64_t{dim}, ", got ", a);
  return sub(mul(roll(a, -1, dim), roll(b, -2, dim)), mul(roll(a, -2, dim), roll(b, -1, dim)));
}

Tensor trace(const Tensor& x) {
  const OpScope scope("trace");
  WEFT_CHECK(x.defined() && x.dim() == 2, "trace: expected a matrix [M, N], got ", x);
  return sum(diagonal(x));
}

}  // namespace weft
