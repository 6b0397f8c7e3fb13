// SPDX-License-Identifier: Apache-2.0
// Ops that order elements, choose some of them or write to some of them.
#include "core/ops/index.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/ops/compare.h"
#include "core/ops/reduce.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"

namespace weft::test {
namespace {

using Numbers = std::vector<double>;

OpInput positions(Shape sizes, int64_t below) { return {std::move(sizes), Values::classes, Layout::dense, below}; }

Tensor at(const Tensor& x, const std::vector<int64_t>& places) { return Tensor::from(places).to(x.device()); }

// clang-format off
const AddCases indexing_cases{
    {"sort", {{{4, 9, 3}, Values::apart}}, BOTH(sort(x[0], 1).values)},
    {"sort_descending", {{{3, 40}, Values::apart, Layout::strided}}, BOTH(sort(x[0], -1, true).values)},
    {"sort_ties", {{{4, 9, 3}, Values::ties}}, BOTH(sort(x[0], 1).values), 1, true, Derivative::kinks},
    {"sort_ties_descending", {{{1, 2100}, Values::ties}}, BOTH(sort(x[0], -1, true).values), 1, true,
     Derivative::kinks},
    {"argsort_ties", {{{4, 9, 3}, Values::ties}}, BOTH(argsort(x[0], 1)), 1, true, Derivative::none},
    {"argsort_ties_descending", {{{1, 2100}, Values::ties}}, BOTH(argsort(x[0], 1, true)), 1, true, Derivative::none},
    {"topk_ties", {{{4, 9}, Values::ties}}, BOTH(topk(x[0], 3).values), 1, true, Derivative::kinks},
    {"topk_long", {{{1, 2100}, Values::apart}}, BOTH(topk(x[0], 50, 1).values), 1, false},
    {"cumsum_long", {{{1300}}}, BOTH(cumsum(x[0], 0)), 1300},
    {"argsort", {{{4, 9, 3}, Values::apart}}, BOTH(argsort(x[0], 1)), 1, true, Derivative::none},
    {"searchsorted", {{{4, 9}, Values::apart}}, CALL(searchsorted(sort(x[0], 1).values, x[0], true)),
     "searchsorted(sort(x[0], 1).values, x[0], right=True)", 9, true, Derivative::none},
    {"unique", {{{5, 9}, Values::apart}},
     [](const Inputs& x) {
       const Unique found = unique(clamp(x[0], -0.5, 0.5));
       return found.values.index({found.inverse});
     },
     "clamp(x[0], -0.5, 0.5)", 1, true, Derivative::none},
    {"unique_counts", {{{5, 9}, Values::apart}}, CALL(unique(clamp(x[0], -0.5, 0.5)).counts),
     "clamp(x[0], -0.5, 0.5).unique(return_counts=True)[1]", 1, true, Derivative::none},
    {"bincount", {{{40}, Values::classes, Layout::dense, 7, false}}, CALL(bincount(x[0], {}, 9)),
     "bincount(x[0], minlength=9)", 1, true, Derivative::none},
    {"bincount_weights", {{{40}, Values::classes, Layout::dense, 7, false}, {{40}, Values::positive}},
     BOTH(bincount(x[0], x[1])), 40, true, Derivative::none},
    {"topk", {{{4, 9}, Values::apart}}, BOTH(topk(x[0], 7).values)},
    {"topk_smallest", {{{9, 4}, Values::apart, Layout::transposed}}, BOTH(topk(x[0], 2, 0, false).values)},
    {"cumsum", {{{3, 11}}}, BOTH(cumsum(x[0], 1)), 11},
    {"cumsum_middle", {{{2, 7, 3}, Values::normal, Layout::transposed}}, BOTH(cumsum(x[0], 1)), 7},
    {"nonzero", {{{4, 5}, Values::boolean}}, BOTH(nonzero(x[0])), 1, true, Derivative::none},
    {"masked_select", {{{4, 6}}, {{4, 6}, Values::boolean}}, BOTH(masked_select(x[0], x[1]))},
    {"masked_select_broadcast", {{{4, 1}}, {{6}, Values::boolean}}, BOTH(masked_select(x[0], x[1])), 6},
    // a view: numbers, slices, ellipsis, a new dimension
    {"index", {{{5, 2, 3, 4}}}, CALL(x[0].index({Slice{-4, {}, 2}, new_axis, ellipsis, -1})),
     "x[0][-4::2, None, ..., -1]"},
    // one after the other, broadcast
    {"index_tensors", {{{3, 4, 5, 2}}, positions({2, 1}, 4), positions({3}, 5)},
     CALL(x[0].index({Slice{1}, x[1], x[2]})), "x[0][1:, x[1], x[2]]", 6},
    // with a slice between them
    {"index_apart", {{{4, 3, 5}}, positions({6}, 4), positions({6}, 5)}, CALL(x[0].index({x[1], Slice{}, x[2]})),
     "x[0][x[1], :, x[2]]", 6},
    {"index_mask", {{{2, 3, 4}}, {{3, 4}, Values::boolean}}, CALL(x[0].index({1, x[1]})), "x[0][1, x[1]]"},
    {"index_put", {{{4, 5, 2}}, {{6, 2}}, positions({6}, 4), positions({6}, 5)},
     CALL(index_put(x[0], {x[2], x[3]}, x[1])), "# keeps any of several values for one place"},
    {"index_put_once", {{{4, 5, 2}}, {{3, 2}}},
     CALL(index_put(x[0], {at(x[0], {3, -1, 0}), at(x[0], {1, 4, -5})}, x[1])),
     "x[0].index_put((tensor([3, -1, 0]), tensor([1, 4, -5])), x[1])"},
    {"index_put_slice", {{{4, 5}, Values::normal, Layout::transposed}, {{3, 1}}},
     CALL(index_put(x[0], {Slice{1}, Slice{{}, {}, 2}}, x[1])),
     "slice_scatter(x[0], slice_scatter(x[0][1:], x[1].expand(3, 3), 1, step=2), 0, 1)", 3},
    {"index_put_accumulate", {{{4, 5}}, {{6, 5}}, positions({6}, 4)}, CALL(index_put(x[0], {x[2]}, x[1], true)),
     "x[0].index_put((x[2],), x[1], accumulate=True)", 7}};
// clang-format on

Tensor given(const Numbers& values) { return Tensor::from(values); }
Tensor given(const Numbers& values, const Shape& sizes) { return Tensor::from(values, sizes); }
Tensor whole(const std::vector<int64_t>& values) { return Tensor::from(values); }

void expect(const Tensor& y, const Shape& sizes, const Numbers& want) {
  EXPECT_EQ(y.sizes(), sizes);
  EXPECT_EQ(y.to_vector<double>(), want);
}

TEST(Values, Order) {
  expect(topk(given({3, 1, 2, 1, 3, 0}, {2, 3}), 2).indices, {2, 2}, {0, 2, 1, 0});
  expect(topk(given({3, 1}), 0).values, {0}, {});
  const Tensor counts = cumsum(whole({1, 0, 1}).to(DType::boolean), 0);
  EXPECT_EQ(counts.dtype(), DType::i64);
  expect(counts, {3}, {1, 1, 2});
}

TEST(Values, PlacesInARow) {
  const Tensor row = given({1, 3, 3, 5}), rows = given({1, 2, 3, 4, 4, 4}, {2, 3});
  expect(searchsorted(row, given({0, 1, 3, 4, 9, 3}, {2, 3})), {2, 3}, {0, 0, 1, 3, 4, 1});
  expect(searchsorted(row, given({0, 1, 3, 4, 9, 3}, {2, 3}), true), {2, 3}, {0, 1, 3, 3, 4, 3});
  expect(searchsorted(rows, given({2, 9, 0, 4}, {2, 2})), {2, 2}, {1, 3, 0, 0});
  expect(searchsorted(rows, given({2, 9, 0, 4}, {2, 2}), true), {2, 2}, {2, 3, 0, 3});
  expect(searchsorted(whole({-5, 0, 7}), whole({7, -6})), {2}, {2, 0});
  expect(searchsorted(given({}, {0}), given({1})), {1}, {0});
  expect(searchsorted(row, given({}, {0})), {0}, {});
}

TEST(Values, NanIsTheLargest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect(searchsorted(given({-1, 0, INFINITY, nan}), given({nan, INFINITY, -0.0}), true), {3}, {4, 3, 2});
  expect(argsort(given({nan, 1, nan, INFINITY})), {4}, {1, 3, 0, 2});
  expect(argsort(given({nan, 1, nan, INFINITY}), 0, true), {4}, {0, 2, 3, 1});
  expect(topk(given({2, nan, 5}), 2).indices, {2}, {1, 2});
}

TEST(Values, Chosen) {
  const Tensor x = given({0, 7, 0, -1, 0, 0.5}, {2, 3});
  expect(nonzero(x), {3, 2}, {0, 1, 1, 0, 1, 2});
  expect(nonzero(given({std::numeric_limits<double>::quiet_NaN(), 0})), {1, 1}, {0});
  expect(nonzero(given({0, 0})), {0, 1}, {});
  EXPECT_EQ(nonzero(Tensor::ones({})).sizes(), (Shape{1, 0}));
  EXPECT_EQ(nonzero(Tensor::ones({0, 3})).sizes(), (Shape{0, 2}));
  expect(masked_select(x, whole({1, 0, 1}).to(DType::boolean)), {4}, {0, 0, -1, 0.5});
  expect(masked_select(x, whole({0}).to(DType::boolean)), {0}, {});
}

TEST(Values, Index) {
  const Tensor x = Tensor::arange(24, DType::f64).reshape({2, 3, 4});
  expect(x.index({1, 2}), {4}, {20, 21, 22, 23});
  expect(x.index({ellipsis, -1}), {2, 3}, {3, 7, 11, 15, 19, 23});
  expect(x.index({0, Slice{1}, Slice{{}, 2}}), {2, 2}, {4, 5, 8, 9});
  expect(x.index({0, Slice{-2, -1}, Slice{{}, {}, 3}}), {1, 2}, {4, 7});
  expect(x.index({0, 0, Slice{2, 100}}), {2}, {2, 3});
  expect(x.index({0, 0, Slice{3, 1}}), {0}, {});
  EXPECT_EQ(x.index({new_axis, ellipsis, new_axis, 0}).sizes(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(x.index({}).sizes(), x.sizes());
  x.index({0, 0, 0}).fill_(-5);  // a view
  EXPECT_EQ(x.index({0, 0, 0}).item(), -5);
  expect(x.index({whole({1, -2}), whole({0, 2})}), {2, 4}, {12, 13, 14, 15, 8, 9, 10, 11});
  expect(x.index({Slice{}, whole({2, 0}), 1}), {2, 2}, {9, 1, 21, 13});
  expect(x.index({whole({0, 1}), Slice{1, 2}, whole({3, 0})}), {2, 1}, {7, 16});
  expect(x.index({Tensor::from<int64_t>({1, 1, 0, 0}, {2, 2}), 0, 3}), {2, 2}, {15, 15, 3, 3});
  expect(x.index({1, whole({1, 0, 1}).to(DType::boolean), Slice{{}, 1}}), {2, 1}, {12, 20});
  expect(x.index({whole({0, 0}).to(DType::boolean)}), {0, 3, 4}, {});
  EXPECT_EQ(x.index({Slice{}, whole({0, 1, 1}), new_axis}).sizes(), (Shape{2, 3, 1, 4}));
}

TEST(Values, IndexPut) {
  const Tensor x = Tensor::zeros({2, 3}, DType::f64);
  expect(index_put(x, {1}, 2.0), {2, 3}, {0, 0, 0, 2, 2, 2});
  expect(index_put(x, {Slice{}, whole({2, 0})}, given({1, 5}, {2, 1})), {2, 3}, {1, 0, 1, 5, 0, 5});
  expect(index_put(x, {whole({0, 1, 0}), whole({1, 1, 1})}, given({1, 2, 3})), {2, 3}, {0, 3, 0, 0, 2, 0});
  expect(index_put(x, {whole({0, 1, 0}), whole({1, 1, 1})}, given({1, 2, 3}), true), {2, 3}, {0, 4, 0, 0, 2, 0});
  expect(index_put(x, {whole({0, 1, 1, 1, 0, 0}).to(DType::boolean).reshape({2, 3})}, 9.0), {2, 3}, {0, 9, 9, 9, 0, 0});
  EXPECT_EQ(index_put(whole({1, 2}), {0}, 7.0).to_vector<int64_t>(), (std::vector<int64_t>{7, 2}));
  expect(x, {2, 3}, {0, 0, 0, 0, 0, 0});
}

TEST(IndexPut, TheValueThatStaysGetsTheGradient) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    const Tensor x = given({1, 2, 3}).to(device).requires_grad_(),
                 values = given({4, 5, 6}).to(device).requires_grad_();
    index_put(x, {whole({2, 0, 2}).to(device)}, values).backward(given({10, 20, 30}).to(device));
    expect(x.grad(), {3}, {0, 20, 0});
    expect(values.grad(), {3}, {0, 10, 30});
  }
}

TEST(Sort, LongRowsAndTheirGradients) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    const int64_t n = 5003;
    const Tensor order = Tensor::arange(n, DType::i64, device);
    // Multiples of 7 modulo a prime hold each number once.
    std::vector<double> numbers, wanted(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) numbers.push_back(static_cast<double>(i * 7 % n));
    const Tensor x = Tensor::from(numbers).to(device).requires_grad_();
    const Sorted sorted = sort(x);
    EXPECT_EQ(sorted.values.to_vector<double>(), order.to_vector<double>());
    sorted.values.backward(Tensor::arange(n, DType::f64, device, 0, 2));
    for (int64_t i = 0; i < n; ++i) wanted[static_cast<size_t>(i)] = 2 * numbers[static_cast<size_t>(i)];
    EXPECT_EQ(x.grad().to_vector<double>(), wanted);
  }
}

}  // namespace
}  // namespace weft::test
