// SPDX-License-Identifier: Apache-2.0
#include "core/ops/concat.h"

#include <algorithm>
#include <cstdint>

#include "core/autograd.h"
#include "core/ops/gather.h"
#include "core/ops/layers/image.h"
#include "core/promotion.h"
#include "core/trace.h"
#include "kernels/contracts/copy.h"

namespace weft {
namespace {

/// y, cut to `length` from `start` along `dim`.
kernels::View part(const Tensor& y, int dim, int64_t start, int64_t length) {
  const NoGrad no_grad;
  return y.slice(dim, start, length).view();
}

}  // namespace

Tensor concat(const std::vector<Tensor>& tensors, Integer dim) {
  const OpScope scope("concat");
  WEFT_CHECK(!tensors.empty(), "concat: expected at least one tensor, got none");
  const Tensor& first = tensors.front();
  WEFT_CHECK(first.defined() && first.dim() >= 1, "concat: expected tensors of at least one dimension, got ", first);
  const int at = wrap_dim("concat", dim, first.dim());
  check_concat_layout(first, at);
  Shape sizes = first.sizes();
  DType dtype = first.dtype();
  sizes[at] = 0;
  for (const Tensor& x : tensors) {
    WEFT_CHECK(x.defined() && x.dim() == first.dim() && x.device() == first.device(), "concat: expected tensors like ",
               first, ", got ", x);
    for (int d = 0; d < x.dim(); ++d)
      WEFT_CHECK(d == at || x.size(d) == first.size(d), "concat: ", first, " and ", x, " differ in dimension ", d,
                 ", not only in ", dim);
    sizes[at] += x.size(at);
    dtype = promote(dtype, x.dtype());
  }
  const Tensor y = Tensor::empty(sizes, dtype, first.device());
  int64_t start = 0;
  for (const Tensor& x : tensors) {
    kernels::copy(y.queue(), part(y, at, start, x.size(at)), x);
    start += x.size(at);
  }
  std::vector<std::pair<int64_t, DType>> parts;
  for (const Tensor& x : tensors) parts.emplace_back(x.size(at), x.dtype());
  return differentiable(y, "concat", tensors, [at, parts](const Tensor& dy) {
    Grads grads;
    int64_t from = 0;
    for (const auto& [length, part_dtype] : parts) {
      grads.push_back(is_floating(part_dtype) ? dy.slice(at, from, length).to(part_dtype) : Tensor());
      from += length;
    }
    return grads;
  });
}

Tensor stack(const std::vector<Tensor>& tensors, Integer dim) {
  WEFT_CHECK(!tensors.empty(), "stack: expected at least one tensor, got none");
  std::vector<Tensor> slices;
  for (const Tensor& x : tensors) {
    WEFT_CHECK(x.defined() && x.sizes() == tensors.front().sizes(), "stack: expected tensors like ", tensors.front(),
               ", got ", x);
    slices.push_back(x.unsqueeze(dim));
  }
  return concat(slices, wrap_dim("stack", dim, slices.front().dim()));
}

Tensor pad(const Tensor& x, Integer dim, Integer before, Integer after) {
  const OpScope scope("pad");
  WEFT_CHECK(x.defined() && x.dim() >= 1, "pad: expected a tensor of at least one dimension, got ", x);
  WEFT_CHECK(before >= 0 && after >= 0, "pad: expected no negative padding, got ", before, " and ", after);
  const int at = wrap_dim("pad", dim, x.dim());
  const int64_t length = x.size(at);
  Shape sizes = x.sizes();
  sizes[at] = before + length + after;
  const Tensor y = Tensor::zeros(sizes, x.dtype(), x.device());
  kernels::copy(y.queue(), y.slice(at, before, length), x);
  return differentiable(y, "pad", {x}, [=](const Tensor& dy) { return Grads{dy.slice(at, before, length)}; });
}

Tensor pad(const Tensor& x, Integer dim, Integer before, Integer after, PadMode mode) {
  const OpScope scope("pad");
  WEFT_CHECK(x.defined() && x.dim() >= 1, "pad: expected a tensor of at least one dimension, got ", x);
  const int at = wrap_dim("pad", dim, x.dim());
  const int64_t n = x.size(at);
  const int64_t most = n == 0 ? 0 : mode == PadMode::replicate ? INT64_MAX : mode == PadMode::reflect ? n - 1 : n;
  WEFT_CHECK(before >= 0 && after >= 0, "pad: expected no negative padding, got ", before, " and ", after);
  WEFT_CHECK(before <= most && after <= most, "pad: expected at most ", most, " elements beyond dimension ", dim,
             " of ", x, ", got ", before, " and ", after);
  std::vector<int64_t> from;
  for (int64_t i = -before; i < n + after; ++i)
    from.push_back(mode == PadMode::circular    ? (i + n) % n
                   : mode == PadMode::replicate ? std::clamp<int64_t>(i, 0, n - 1)
                   : i < 0                      ? -i
                   : i < n                      ? i
                                                : 2 * (n - 1) - i);
  return index_select(x, at, Tensor::from(from).to(x.device()));
}

}  // namespace weft
