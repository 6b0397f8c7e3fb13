// SPDX-License-Identifier: Apache-2.0
#include "core/ops/logsumexp.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/add.h"
#include "core/ops/compare.h"
#include "core/ops/max.h"
#include "core/ops/sub.h"
#include "core/ops/sum.h"
#include "core/ops/unary.h"
#include "core/ops/where.h"
#include "core/trace.h"

namespace weft {

Tensor logsumexp(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  const OpScope scope("logsumexp");
  WEFT_CHECK(input.defined() && input.is_floating(), "logsumexp: expected a floating tensor, got ", input);
  const Tensor x = autocast_full(input);
  Tensor largest;
  {
    const NoGrad no_grad;
    largest = max(x, dims, /*keep_dims=*/true);
    largest = where(isfinite(largest), largest, 0.0);
  }
  const Tensor rest = log(sum(exp(sub(x, largest)), dims, keep_dims));
  return add(rest, largest.reshape(rest.sizes()));
}

}  // namespace weft
