// SPDX-License-Identifier: Apache-2.0
// A member of Tensor gives its function's result; arguments differ from the defaults.
#include <gtest/gtest.h>

#include <bit>

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/slices.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"

namespace weft {
namespace {

void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  EXPECT_EQ(a.dtype(), b.dtype());
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::bit_cast<uint64_t>(x[i]), std::bit_cast<uint64_t>(y[i])) << i;
}
void expect_same(const Sorted& a, const Sorted& b) {
  expect_same(a.values, b.values);
  expect_same(a.indices, b.indices);
}
void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) expect_same(a[i], b[i]);
}

#define EXPECT_MEMBER(name, ...)                                  \
  {                                                               \
    SCOPED_TRACE(#name);                                          \
    expect_same(x.name(__VA_ARGS__), weft::name(x, __VA_ARGS__)); \
  }

// [2, 3, 4], positive, without order.
const Tensor& values() {
  static const Tensor x = [] {
    std::vector<float> numbers;
    for (int i = 0; i < 24; ++i) numbers.push_back(0.25f + 0.125f * static_cast<float>(i * 7 % 24));
    return Tensor::from(numbers, {2, 3, 4});
  }();
  return x;
}

TEST(Members, AreTheFunctions) {
  const Tensor x = values(), other = x.flip({0}), mask = gt(x, 1.5);
  const Tensor at = Tensor::from(std::vector<int64_t>{2, 0, 1, 2, 0, 1, 1, 0}, {2, 1, 4});
  const Tensor rows = Tensor::from(std::vector<int64_t>{2, 0});
#define WEFT_ROW(name, ...)               \
  {                                       \
    SCOPED_TRACE(#name);                  \
    expect_same(x.name(), weft::name(x)); \
  }
  WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW
  EXPECT_MEMBER(sum, {0, 2}, true)
  EXPECT_MEMBER(prod, {0, 2}, true)
  EXPECT_MEMBER(mean, {0, 2}, true)
  EXPECT_MEMBER(max, {0, 2}, true)
  EXPECT_MEMBER(min, {0, 2}, true)
  EXPECT_MEMBER(norm, {0, 2}, true)
  EXPECT_MEMBER(logsumexp, {0, 2}, true)
  EXPECT_MEMBER(any, {0, 2}, true)
  EXPECT_MEMBER(all, {0, 2}, true)
  expect_same(x.var({0, 2}, true), var(x, {.dims = {0, 2}, .keep_dims = true}));
  expect_same(x.std({0, 2}, true), weft::std(x, {.dims = {0, 2}, .keep_dims = true}));
  EXPECT_MEMBER(argmax, 1, true)
  EXPECT_MEMBER(argmin, 1, true)
  EXPECT_MEMBER(cumsum, 1)
  EXPECT_MEMBER(cumprod, 1)
  EXPECT_MEMBER(softmax, 1)
  EXPECT_MEMBER(log_softmax, 1)
  EXPECT_MEMBER(pow, 1.5)
  EXPECT_MEMBER(clamp, 0.75, 2.0)
  EXPECT_MEMBER(matmul, other.transpose(1, 2))
  EXPECT_MEMBER(masked_fill, mask, 7)
  EXPECT_MEMBER(masked_select, mask)
  EXPECT_MEMBER(maximum, other)
  EXPECT_MEMBER(minimum, other)
  EXPECT_MEMBER(gather, 1, at)
  EXPECT_MEMBER(scatter, 1, at, other)
  EXPECT_MEMBER(scatter_add, 1, at, other)
  EXPECT_MEMBER(index_select, 1, rows)
  expect_same(x.nonzero(), nonzero(x));
  EXPECT_MEMBER(tril, 1)
  EXPECT_MEMBER(triu, 1)
  EXPECT_MEMBER(diagonal, 1)
  EXPECT_MEMBER(movedim, 0, 2)
  EXPECT_MEMBER(repeat, {2, 1, 3})
  EXPECT_MEMBER(repeat_interleave, 2, 1)
  EXPECT_MEMBER(flip, {0, 2})
  EXPECT_MEMBER(roll, 1, 2)
  EXPECT_MEMBER(chunk, 2, 1)
  EXPECT_MEMBER(split, 2, 1)
  EXPECT_MEMBER(unbind, 1)
  EXPECT_MEMBER(sort, 1, true)
  EXPECT_MEMBER(topk, 2, 1, false)
  EXPECT_MEMBER(argsort, 1, true)
  EXPECT_MEMBER(median, 1, true)
  expect_same(x.median(), median(x));
  expect_same(x.unique().values, unique(x).values);
}

}  // namespace
}  // namespace weft
