// SPDX-License-Identifier: Apache-2.0
#include "core/ops/weight_norm.h"

#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/trace.h"

namespace weft {

Tensor weight_norm(const Tensor& v, const Tensor& g) {
  const OpScope scope("weight_norm");
  WEFT_CHECK(v.defined() && v.is_floating() && v.dim() >= 2, "weight_norm: expected floating directions [O, ...], got ",
             v);
  Shape sizes;
  std::vector<int64_t> dims;
  for (int d = 0; d < v.dim(); ++d) {
    sizes.push_back(d == 0 ? v.size(0) : 1);
    if (d > 0) dims.push_back(d);
  }
  WEFT_CHECK(g.defined() && g.sizes() == sizes, "weight_norm: expected lengths ", sizes, " for directions ", v,
             ", got ", g);
  return mul(v, div(g, norm(v, dims, true)));
}

}  // namespace weft
