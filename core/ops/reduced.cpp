// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduced.h"

namespace weft {

Reduced reduced(const char* op, const Tensor& x, const std::vector<int64_t>& dims) {
  uint32_t over = dims.empty() ? ~0u : 0u;
  for (const int64_t dim : dims) {
    const uint32_t bit = 1u << wrap_dim(op, dim, x.dim());
    WEFT_CHECK(!(over & bit), op, ": dimension ", dim, " is named twice");
    over |= bit;
  }
  Reduced result{x.sizes(), {}, 1};
  for (int d = 0; d < x.dim(); ++d) {
    if (over >> d & 1) {
      result.count *= x.size(d);
      result.kept[d] = 1;
    } else {
      result.dropped.push_back(x.size(d));
    }
  }
  return result;
}

Tensor reduce(kernels::Reduce f, const Tensor& x, const Reduced& to) {
  Tensor y = Tensor::empty(to.kept, x.dtype(), x.device());
  kernels::reduce(y.queue(), f, y, x);
  return y;
}

}  // namespace weft
