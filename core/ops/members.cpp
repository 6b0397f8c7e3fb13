// SPDX-License-Identifier: Apache-2.0
// Functions of core/ops as members of Tensor.
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/index.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/slices.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"

namespace weft {

Tensor Tensor::operator[](const Index& at) const { return index({at}); }
Tensor Tensor::operator[](const std::vector<Index>& at) const { return index(at); }

Tensor Tensor::view(const Shape& sizes) const {
  const Tensor y = reshape(sizes);
  WEFT_CHECK(y.storage().get() == storage().get(), "view: the strides of ", *this, " demand a copy for sizes ", sizes,
             ". Use reshape");
  return y;
}

Tensor Tensor::t() const {
  WEFT_CHECK(dim() <= 2, "t: expected at most 2 dimensions, got ", *this, ". Use transpose");
  return dim() < 2 ? *this : transpose(0, 1);
}

#define WEFT_ROW(name, ...) \
  Tensor Tensor::name() const { return weft::name(*this); }
WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW

#define WEFT_REDUCTION(name) \
  Tensor Tensor::name(const Dims& dims, bool keep_dims) const { return weft::name(*this, dims, keep_dims); }
WEFT_REDUCTION(sum)
WEFT_REDUCTION(prod)
WEFT_REDUCTION(mean)
WEFT_REDUCTION(max)
WEFT_REDUCTION(min)
WEFT_REDUCTION(norm)
WEFT_REDUCTION(logsumexp)
WEFT_REDUCTION(any)
WEFT_REDUCTION(all)
#undef WEFT_REDUCTION

Tensor Tensor::var(const Dims& dims, bool keep_dims) const {
  return weft::var(*this, {.dims = dims, .keep_dims = keep_dims});
}
Tensor Tensor::std(const Dims& dims, bool keep_dims) const {
  return weft::std(*this, {.dims = dims, .keep_dims = keep_dims});
}
Tensor Tensor::argmax(Integer dim, bool keep_dims) const { return weft::argmax(*this, dim, keep_dims); }
Tensor Tensor::argmin(Integer dim, bool keep_dims) const { return weft::argmin(*this, dim, keep_dims); }
Tensor Tensor::cumsum(Integer dim) const { return weft::cumsum(*this, dim); }
Tensor Tensor::cumprod(Integer dim) const { return weft::cumprod(*this, dim); }
Tensor Tensor::softmax(Integer dim) const { return weft::softmax(*this, dim); }
Tensor Tensor::log_softmax(Integer dim) const { return weft::log_softmax(*this, dim); }
Tensor Tensor::pow(Number exponent) const { return weft::pow(*this, exponent); }
Tensor Tensor::clamp(Number low, Number high) const { return weft::clamp(*this, low, high); }
Tensor Tensor::matmul(const Tensor& other) const { return weft::matmul(*this, other); }
Tensor Tensor::masked_fill(const Tensor& mask, Number value) const { return weft::masked_fill(*this, mask, value); }
Tensor Tensor::masked_select(const Tensor& mask) const { return weft::masked_select(*this, mask); }
Tensor Tensor::maximum(const Tensor& other) const { return weft::maximum(*this, other); }
Tensor Tensor::minimum(const Tensor& other) const { return weft::minimum(*this, other); }
Tensor Tensor::gather(Integer dim, const Tensor& at) const { return weft::gather(*this, dim, at); }
Tensor Tensor::scatter(Integer dim, const Tensor& at, const Tensor& source) const {
  return weft::scatter(*this, dim, at, source);
}
Tensor Tensor::scatter_add(Integer dim, const Tensor& at, const Tensor& source) const {
  return weft::scatter_add(*this, dim, at, source);
}
Tensor Tensor::index_select(Integer dim, const Tensor& at) const { return weft::index_select(*this, dim, at); }
Tensor Tensor::nonzero() const { return weft::nonzero(*this); }
Tensor Tensor::tril(Integer diagonal) const { return weft::tril(*this, diagonal); }
Tensor Tensor::triu(Integer diagonal) const { return weft::triu(*this, diagonal); }
Tensor Tensor::diagonal(Integer offset) const { return weft::diagonal(*this, offset); }
Tensor Tensor::movedim(Integer from, Integer to) const { return weft::movedim(*this, from, to); }
Tensor Tensor::repeat(const std::vector<int64_t>& counts) const { return weft::repeat(*this, counts); }
Tensor Tensor::repeat_interleave(Integer count, Integer dim) const {
  return weft::repeat_interleave(*this, count, dim);
}
Tensor Tensor::flip(const Dims& dims) const { return weft::flip(*this, dims); }
Tensor Tensor::roll(Integer shift, Integer dim) const { return weft::roll(*this, shift, dim); }
std::vector<Tensor> Tensor::chunk(Integer count, Integer dim) const { return weft::chunk(*this, count, dim); }
std::vector<Tensor> Tensor::split(Integer size, Integer dim) const { return weft::split(*this, size, dim); }
std::vector<Tensor> Tensor::unbind(Integer dim) const { return weft::unbind(*this, dim); }
Sorted Tensor::sort(Integer dim, bool descending) const { return weft::sort(*this, dim, descending); }
Sorted Tensor::topk(Integer k, Integer dim, bool largest) const { return weft::topk(*this, k, dim, largest); }
Tensor Tensor::argsort(Integer dim, bool descending) const { return weft::argsort(*this, dim, descending); }
Tensor Tensor::median() const { return weft::median(*this); }
Sorted Tensor::median(Integer dim, bool keep_dims) const { return weft::median(*this, dim, keep_dims); }
Unique Tensor::unique() const { return weft::unique(*this); }

}  // namespace weft
