// SPDX-License-Identifier: Apache-2.0
#include "core/ops/broadcast.h"

#include "core/autograd.h"
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

Tensor apart_from(const Tensor& x, const Tensor& source) {
  if (source.storage()->memory() != x.storage()->memory()) return source;
  const kernels::View &to = x.view(), &from = source.view();
  const auto begin = [](const kernels::View& view) { return static_cast<const char*>(view.data); };
  const auto end = [&](const kernels::View& view) {
    return begin(view) + view.span() * static_cast<int64_t>(size_of(view.dtype));
  };
  if (end(from) <= begin(to) || end(to) <= begin(from)) return source;
  bool same = from.data == to.data && from.same_sizes(to);
  for (int d = 0; same && d < to.rank; ++d) same = to.sizes[d] == 1 || from.strides[d] == to.strides[d];
  return same ? source : source.clone();
}

void check_own_elements(const char* op, const Tensor& x) {
  for (int d = 0; d < x.dim(); ++d)
    WEFT_CHECK(x.stride(d) != 0 || x.size(d) <= 1, op, ": the elements of ", x, " along dimension ", d,
               " are one in memory. Change its clone()");
}

void check_needs_no_gradient(const char* op, const Tensor& source) {
  WEFT_CHECK(!wants_gradient(source), op, ": ", source,
             " needs a gradient, and changes in place are not recorded. Use its detach(), or an op that returns a new "
             "tensor");
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
