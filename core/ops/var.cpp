// SPDX-License-Identifier: Apache-2.0
#include "core/ops/var.h"

#include "core/autocast.h"
#include "core/ops/affine.h"
#include "core/ops/mean.h"
#include "core/ops/reduced.h"
#include "core/ops/sub.h"
#include "core/ops/sum.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {

Tensor var(const Tensor& input, const VarOptions& options) {
  const OpScope scope("var");
  WEFT_CHECK(input.defined() && input.is_floating(), "var: expected a floating tensor, got ", input);
  const Tensor x = autocast_full(input);
  const int64_t count = reduced("var", x, options.dims).count;
  const Tensor squares = square(sub(x, mean(x, options.dims, /*keep_dims=*/true)));
  return affine(sum(squares, options.dims, options.keep_dims), 1 / static_cast<double>(count - options.correction), 0);
}

Tensor std(const Tensor& x, const VarOptions& options) { return sqrt(var(x, options)); }

}  // namespace weft
