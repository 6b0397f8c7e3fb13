// SPDX-License-Identifier: Apache-2.0
#include "core/ops/slices.h"

#include "core/ops/binary.h"
#include "core/ops/gather.h"
#include "core/trace.h"

namespace weft {

Tensor movedim(const Tensor& x, Integer from, Integer to) {
  const OpScope scope("movedim");
  WEFT_CHECK(x.defined(), "movedim: expected a tensor, got none");
  const int source = wrap_dim("movedim", from, x.dim()), target = wrap_dim("movedim", to, x.dim());
  std::vector<int64_t> order;
  for (int d = 0; d < x.dim(); ++d)
    if (d != source) order.push_back(d);
  order.insert(order.begin() + target, source);
  return x.permute(Shape(order));
}

Tensor diff(const Tensor& x, Integer dim, Integer times) {
  const OpScope scope("diff");
  WEFT_CHECK(x.defined() && x.dim() >= 1, "diff: expected a tensor of at least one dimension, got ", x);
  WEFT_CHECK(times >= 0, "diff: expected at least 0 times, got ", int64_t{times});
  Tensor y = x;
  for (int64_t i = 0; i < times && y.size(dim) > 0; ++i) {
    const int64_t count = y.size(dim) - 1;
    y = sub(y.slice(dim, 1, count), y.slice(dim, 0, count));
  }
  return y;
}

namespace {

/// index [K] for each element of x's sizes with K along `dim`.
Tensor for_slices(const char* op, const Tensor& x, Integer dim, const Tensor& index) {
  WEFT_CHECK(x.defined() && index.defined() && index.dim() == 1, op, ": expected a tensor and an index [K], got ", x,
             " and ", index);
  const int d = wrap_dim(op, dim, x.dim());
  Shape one, all = x.sizes();
  for (int i = 0; i < x.dim(); ++i) one.push_back(i == d ? index.size(0) : 1);
  all[d] = index.size(0);
  return index.reshape(one).expand(all);
}

void check_source(const char* op, const Tensor& source, const Tensor& places) {
  WEFT_CHECK(source.defined() && source.sizes() == places.sizes(), op, ": expected a source ", places.sizes(), ", got ",
             source);
}

}  // namespace

Tensor index_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source, Number alpha) {
  const OpScope scope("index_add");
  const Tensor places = for_slices("index_add", x, dim, index);
  check_source("index_add", source, places);
  WEFT_CHECK(x.is_floating() && source.is_floating(), "index_add: expected floating tensors, got ", x, " and ", source,
             ". Convert them with to(dtype)");
  return scatter_add(x, dim, places, alpha.value() == 1 ? source : mul(source, alpha));
}

Tensor index_copy(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  const OpScope scope("index_copy");
  const Tensor places = for_slices("index_copy", x, dim, index);
  check_source("index_copy", source, places);
  return scatter(x, dim, places, source);
}

Tensor index_fill(const Tensor& x, Integer dim, const Tensor& index, Number value) {
  const OpScope scope("index_fill");
  return scatter(x, dim, for_slices("index_fill", x, dim, index), value);
}

}  // namespace weft
