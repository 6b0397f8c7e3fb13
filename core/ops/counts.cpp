// SPDX-License-Identifier: Apache-2.0
#include "core/ops/counts.h"

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/reduce.h"
#include "core/trace.h"

namespace weft {

Tensor count_nonzero(const Tensor& x, const std::vector<int64_t>& dims) {
  const OpScope scope("count_nonzero");
  WEFT_CHECK(x.defined(), "count_nonzero: expected a tensor, got none");
  return sum(ne(x, 0), dims);
}

namespace {

Tensor without_nan(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.is_floating(), op, ": expected a floating tensor, got ", x);
  return where(isnan(x.detach()), 0, x);
}

}  // namespace

Tensor nansum(const Tensor& x, const std::vector<int64_t>& dims, bool keep_dims) {
  const OpScope scope("nansum");
  return sum(without_nan("nansum", x), dims, keep_dims);
}

Tensor nanmean(const Tensor& x, const std::vector<int64_t>& dims, bool keep_dims) {
  const OpScope scope("nanmean");
  const Tensor whole = sum(without_nan("nanmean", x), dims, keep_dims);
  return div(whole, sum(logical_not(isnan(x.detach())), dims, keep_dims).to(whole.dtype()));
}

}  // namespace weft
