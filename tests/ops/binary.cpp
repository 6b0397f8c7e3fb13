// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

template <class... Truths>
Tensor bits(const Truths&... truths) {
  Tensor all = Tensor::zeros({3, 5}, DType::i64, std::get<0>(std::tie(truths...)).device());
  ((all = all * 2.0 + truths), ...);
  return all;
}

// clang-format off
/// A function of two tensors: of equal sizes, of rows, of a column and a row.
#define BROADCAST(op, values, right)                                                                               \
    {#op, {{{3, 5}, Values::values}, {{3, 5}, Values::values}}, BOTH(op(x[0], right))},                            \
    {#op "_row", {{{4, 3, 5}, Values::values}, {{5}, Values::values}}, BOTH(op(x[0], right)), 12},                 \
    {#op "_outer", {{{4, 1}, Values::values}, {{1, 7}, Values::values}}, BOTH(op(x[0], right)), 7}

const AddCases binary_cases{
    BROADCAST(add, normal, x[1]), BROADCAST(sub, normal, x[1]), BROADCAST(mul, normal, x[1]),
    BROADCAST(div, positive, x[1]), BROADCAST(maximum, apart, x[1] + 0.03125),
    BROADCAST(minimum, apart, x[1] + 0.03125),
    {"pow", {{{3, 5}, Values::positive}, {{3, 5}}}, BOTH(pow(x[0], x[1])), 1},
    {"add_alpha", {{{3, 5}}, {{3, 5}}}, CALL(add(x[0], x[1], -2.5)), "add(x[0], x[1], alpha=-2.5)"},
    {"add_scalar_tensor", {{{3, 5}}, {{}}}, BOTH(x[0] + x[1]), 15},
    {"add_empty", {{{0, 5}}, {{5}}}, BOTH(x[0] + x[1])},
    {"add_transposed", {{{6, 5}, Values::normal, Layout::transposed}, {{6, 5}}}, BOTH(x[0] + x[1])},
    {"mul_strided", {{{3, 5}, Values::normal, Layout::strided}, {{3, 5}, Values::normal, Layout::transposed}},
     BOTH(x[0] * x[1])},
    {"mul_itself", {{{3, 5}}}, BOTH(x[0] * x[0]), 1},
    {"mul_long", {{{3, 1031}}, {{1031}}}, BOTH(x[0] * x[1]), 3},
    {"where", {{{3, 5}, Values::boolean}, {{3, 5}}, {{3, 5}}}, BOTH(where(x[0], x[1], x[2]))},
    {"where_broadcast", {{{4, 1}, Values::boolean}, {{4, 5}}, {{}}}, BOTH(where(x[0], x[1], x[2])), 20},
    {"where_stretched", {{{4, 1}, Values::boolean}, {{5}}, {{4, 5}}}, BOTH(where(x[0], x[1], x[2])), 4},
    {"comparisons", {{{3, 5}, Values::apart}, {{3, 5}, Values::apart}},
     BOTH(bits(eq(x[0], x[1]), ne(x[0], x[1]), lt(x[0], x[1]), le(x[0], x[1]), gt(x[0], x[1]), ge(x[0], x[1]),
                logical_and(gt(x[0], 0.0), lt(x[1], 0.5)), logical_or(eq(x[0], 0.0625), ge(x[1], -1)))),
     1, true, Derivative::none, {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"}},
    // Equal elements have no slope of their own.
    {"maximum_ties", {{{3, 50}, Values::apart}, {{3, 50}, Values::apart}}, BOTH(maximum(x[0], x[1])), 1, true,
     Derivative::kinks},
    {"minimum_ties", {{{3, 50}, Values::apart}, {{3, 50}, Values::apart}}, BOTH(minimum(x[0], x[1])), 1, true,
     Derivative::kinks},
    {"add_", {{{3, 5}}, {{5}}}, CALL(x[0].clone().add_(x[1], -0.75)), "x[0].clone().add_(x[1], alpha=-0.75)", 1, true,
     Derivative::none},
    {"mul_", {{{3, 5}}}, CALL(x[0].clone().mul_(-0.75)), "x[0].clone().mul_(-0.75)", 1, true, Derivative::none},
    {"copy_", {{{3, 5}}, {{5}}}, BOTH(x[0].clone().copy_(x[1])), 1, true, Derivative::none},
    {"fill_", {{{3, 5}}}, BOTH(x[0].clone().fill_(3)), 1, true, Derivative::none}};
// clang-format on

}  // namespace
}  // namespace weft::test
