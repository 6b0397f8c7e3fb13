// SPDX-License-Identifier: Apache-2.0
#include "core/autograd.h"
#include "core/ops/broadcast.h"
#include "core/tensor.h"
#include "core/trace.h"

namespace weft {

Tensor Tensor::expand(const Shape& sizes) const {
  const OpScope scope("expand");
  if (this->sizes() == sizes) return *this;
  WEFT_CHECK(sizes.rank() >= dim(), "expand: ", *this, " has more dimensions than ", sizes);
  const int extra = sizes.rank() - dim();
  for (int d = 0; d < dim(); ++d)
    WEFT_CHECK(size(d) == sizes[d + extra] || size(d) == 1, "expand: ", *this, " does not stretch to ", sizes,
               ": only sizes of 1 do");
  for (const int64_t size : sizes) WEFT_CHECK(size >= 0, "expand: sizes must not be negative, got ", sizes);
  return differentiable(alias(broadcast_view(*this, sizes)), "expand", {*this},
                        [from = this->sizes()](const Tensor& dy) { return Grads{reduce_to(dy, from)}; });
}

}  // namespace weft
