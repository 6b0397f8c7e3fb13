// SPDX-License-Identifier: Apache-2.0
#include "core/ops/triangle.h"

#include "core/ops/compare.h"
#include "core/ops/sub.h"
#include "core/ops/where.h"

namespace weft {
namespace {

/// Column minus row of each element of the last two dimensions.
Tensor diagonals(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.dim() >= 2, op, ": expected a matrix [..., R, C], got ", x);
  const Tensor rows = Tensor::arange(x.size(-2), DType::i64, x.device());
  return sub(Tensor::arange(x.size(-1), DType::i64, x.device()), rows.unsqueeze(1));
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) {
  return where(le(diagonals("tril", x), static_cast<double>(diagonal)), x, 0.0);
}

Tensor triu(const Tensor& x, int64_t diagonal) {
  return where(ge(diagonals("triu", x), static_cast<double>(diagonal)), x, 0.0);
}

}  // namespace weft
