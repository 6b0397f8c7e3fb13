// SPDX-License-Identifier: Apache-2.0
#include "core/ops/broadcast.h"

#include "core/promotion.h"

namespace weft {

kernels::View broadcast_view(const Tensor& x, const Shape& sizes) {
  kernels::View view = x;
  if (x.sizes() == sizes) return view;
  const int extra = sizes.rank() - view.rank;
  for (int d = sizes.rank() - 1; d >= 0; --d) {
    const bool stretched = d < extra || x.view().sizes[d - extra] != sizes[d];
    view.strides[d] = stretched ? 0 : x.view().strides[d - extra];
    view.sizes[d] = sizes[d];
  }
  view.rank = sizes.rank();
  return view;
}

Operands operands(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.defined() && b.defined(), op, ": expected two tensors, got ", a, " and ", b);
  WEFT_CHECK(a.device() == b.device(), op, ": expected tensors on one device, got ", a, " and ", b,
             ". Move one with to(device)");
  if (a.dtype() == b.dtype()) return {a, b, broadcast_shapes(op, a.sizes(), b.sizes())};
  const DType dtype = promote(a.dtype(), b.dtype());
  return {a.to(dtype), b.to(dtype), broadcast_shapes(op, a.sizes(), b.sizes())};
}

}  // namespace weft
