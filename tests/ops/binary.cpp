// SPDX-License-Identifier: Apache-2.0
#include "core/ops/add.h"
#include "core/ops/compare.h"
#include "core/ops/div.h"
#include "core/ops/maximum.h"
#include "core/ops/mul.h"
#include "core/ops/pow.h"
#include "core/ops/sub.h"
#include "core/ops/where.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

using Inputs = std::vector<Tensor>;

const AddCases cases{
    {"add", {{{3, 5}, Values::normal}, {{3, 5}, Values::normal}}, [](const Inputs& x) { return add(x[0], x[1]); }},
    {"add_row",
     {{{4, 3, 5}, Values::normal}, {{5}, Values::normal}},
     [](const Inputs& x) { return add(x[0], x[1]); },
     12},
    {"add_outer",
     {{{4, 1}, Values::normal}, {{1, 7}, Values::normal}},
     [](const Inputs& x) { return add(x[0], x[1]); },
     7},
    {"sub", {{{3, 5}, Values::normal}, {{3, 5}, Values::normal}}, [](const Inputs& x) { return sub(x[0], x[1]); }},
    {"sub_row",
     {{{4, 3, 5}, Values::normal}, {{5}, Values::normal}},
     [](const Inputs& x) { return sub(x[0], x[1]); },
     12},
    {"sub_outer",
     {{{4, 1}, Values::normal}, {{1, 7}, Values::normal}},
     [](const Inputs& x) { return sub(x[0], x[1]); },
     7},
    {"mul", {{{3, 5}, Values::normal}, {{3, 5}, Values::normal}}, [](const Inputs& x) { return mul(x[0], x[1]); }},
    {"mul_row",
     {{{4, 3, 5}, Values::normal}, {{5}, Values::normal}},
     [](const Inputs& x) { return mul(x[0], x[1]); },
     12},
    {"mul_outer",
     {{{4, 1}, Values::normal}, {{1, 7}, Values::normal}},
     [](const Inputs& x) { return mul(x[0], x[1]); },
     7},
    {"div", {{{3, 5}, Values::positive}, {{3, 5}, Values::positive}}, [](const Inputs& x) { return div(x[0], x[1]); }},
    {"div_row",
     {{{4, 3, 5}, Values::positive}, {{5}, Values::positive}},
     [](const Inputs& x) { return div(x[0], x[1]); },
     12},
    {"div_outer",
     {{{4, 1}, Values::positive}, {{1, 7}, Values::positive}},
     [](const Inputs& x) { return div(x[0], x[1]); },
     7},
    {"maximum",
     {{{3, 5}, Values::apart}, {{3, 5}, Values::apart}},
     [](const Inputs& x) { return maximum(x[0], x[1] + 0.03125); }},
    {"maximum_row",
     {{{4, 3, 5}, Values::apart}, {{5}, Values::apart}},
     [](const Inputs& x) { return maximum(x[0], x[1] + 0.03125); },
     12},
    {"maximum_outer",
     {{{4, 1}, Values::apart}, {{1, 7}, Values::apart}},
     [](const Inputs& x) { return maximum(x[0], x[1] + 0.03125); },
     7},
    {"minimum",
     {{{3, 5}, Values::apart}, {{3, 5}, Values::apart}},
     [](const Inputs& x) { return minimum(x[0], x[1] + 0.03125); }},
    {"minimum_row",
     {{{4, 3, 5}, Values::apart}, {{5}, Values::apart}},
     [](const Inputs& x) { return minimum(x[0], x[1] + 0.03125); },
     12},
    {"minimum_outer",
     {{{4, 1}, Values::apart}, {{1, 7}, Values::apart}},
     [](const Inputs& x) { return minimum(x[0], x[1] + 0.03125); },
     7},
    {"pow", {{{3, 5}, Values::positive}, {{3, 5}}}, [](const Inputs& x) { return pow(x[0], x[1]); }, 1},
    {"add_alpha", {{{3, 5}}, {{3, 5}}}, [](const Inputs& x) { return add(x[0], x[1], -2.5); }},
    {"add_scalar_tensor", {{{3, 5}}, {{}}}, [](const Inputs& x) { return x[0] + x[1]; }, 15},
    {"add_empty", {{{0, 5}}, {{5}}}, [](const Inputs& x) { return x[0] + x[1]; }},
    {"add_transposed",
     {{{6, 5}, Values::normal, Layout::transposed}, {{6, 5}}},
     [](const Inputs& x) { return x[0] + x[1]; }},
    {"mul_strided",
     {{{3, 5}, Values::normal, Layout::strided}, {{3, 5}, Values::normal, Layout::transposed}},
     [](const Inputs& x) { return x[0] * x[1]; }},
    {"mul_itself", {{{3, 5}}}, [](const Inputs& x) { return x[0] * x[0]; }, 1},
    {"mul_long", {{{3, 1031}}, {{1031}}}, [](const Inputs& x) { return x[0] * x[1]; }, 3},
    {"where", {{{3, 5}, Values::boolean}, {{3, 5}}, {{3, 5}}}, [](const Inputs& x) { return where(x[0], x[1], x[2]); }},
    {"where_broadcast",
     {{{4, 1}, Values::boolean}, {{4, 5}}, {{}}},
     [](const Inputs& x) { return where(x[0], x[1], x[2]); },
     20},
    {"where_stretched",
     {{{4, 1}, Values::boolean}, {{5}}, {{4, 5}}},
     [](const Inputs& x) { return where(x[0], x[1], x[2]); },
     4},
    {"comparisons",
     {{{3, 5}, Values::apart}, {{3, 5}, Values::apart}},
     [](const Inputs& x) {
       const Tensor all[] = {eq(x[0], x[1]),
                             ne(x[0], x[1]),
                             lt(x[0], x[1]),
                             le(x[0], x[1]),
                             gt(x[0], x[1]),
                             ge(x[0], x[1]),
                             logical_and(gt(x[0], 0.0), lt(x[1], 0.5)),
                             logical_or(eq(x[0], 0.0625), ge(x[1], -1))};
       Tensor bits = Tensor::zeros({3, 5}, DType::i64, x[0].device());
       for (const Tensor& bit : all) bits = bits * 2.0 + bit;
       return bits;
     },
     1,
     true,
     false,
     {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"}},
    // Equal elements have no slope of their own: ties.cpp.
    {"maximum_ties",
     {{{3, 50}, Values::apart}, {{3, 50}, Values::apart}},
     [](const Inputs& x) { return maximum(x[0], x[1]); },
     1,
     true,
     false},
    {"minimum_ties",
     {{{3, 50}, Values::apart}, {{3, 50}, Values::apart}},
     [](const Inputs& x) { return minimum(x[0], x[1]); },
     1,
     true,
     false},
    {"add_", {{{3, 5}}, {{5}}}, [](const Inputs& x) { return x[0].clone().add_(x[1], -0.75); }, 1, true, false},
    {"mul_", {{{3, 5}}}, [](const Inputs& x) { return x[0].clone().mul_(-0.75); }, 1, true, false},
    {"copy_", {{{3, 5}}, {{5}}}, [](const Inputs& x) { return x[0].clone().copy_(x[1]); }, 1, true, false},
    {"fill_", {{{3, 5}}}, [](const Inputs& x) { return x[0].clone().fill_(3); }, 1, true, false},
};

}  // namespace
}  // namespace weft::test
