// SPDX-License-Identifier: Apache-2.0
#include "core/ops/nonzero.h"

#include "core/autograd.h"
#include "core/ops/broadcast.h"
#include "core/ops/compare.h"
#include "core/ops/cumsum.h"
#include "core/ops/index_select.h"
#include "core/trace.h"
#include "kernels/nonzero.h"

namespace weft {

Tensor nonzero(const Tensor& x) {
  WEFT_CHECK(x.defined(), "nonzero: expected a tensor, got none");
  const OpScope scope("nonzero");
  const NoGrad no_grad;
  const Tensor found = (x.dtype() == DType::boolean ? x : ne(x, 0.0)).contiguous();
  const int64_t n = found.numel();
  if (n == 0) return Tensor::empty({0, x.dim()}, DType::i64, x.device());
  const Tensor ends = cumsum(found.reshape({n}), 0);
  const auto count = static_cast<int64_t>(ends.select(0, n - 1).item());
  const Tensor y = Tensor::empty({count, x.dim()}, DType::i64, x.device());
  if (y.numel() > 0) kernels::nonzero(y.queue(), y, found, ends);
  return y;
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  WEFT_CHECK(x.defined() && mask.defined() && mask.dtype() == DType::boolean && mask.device() == x.device(),
             "masked_select: expected a tensor and a bool mask on its device, got ", x, " and ", mask);
  const Shape sizes = broadcast_shapes("masked_select", x.sizes(), mask.sizes());
  const Tensor at = nonzero(mask.expand(sizes).reshape({sizes.numel()}));
  return index_select(x.expand(sizes).reshape({sizes.numel()}), 0, at.reshape({at.size(0)}));
}

}  // namespace weft
