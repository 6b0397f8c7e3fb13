// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

// clang-format off
#define REDUCTION(op, values)                                                                                         \
    {#op "_all", {{{3, 5}, Values::values}}, BOTH(op(x[0])), 67},                                                     \
    {#op "_rows", {{{7, 9}, Values::values}}, BOTH(op(x[0], {0})), 67},                                               \
    {#op "_columns", {{{7, 9}, Values::values}}, BOTH(op(x[0], {-1})), 67},                                           \
    {#op "_middle", {{{3, 5, 4}, Values::values}}, BOTH(op(x[0], {1}, true)), 67},                                    \
    {#op "_ends", {{{3, 5, 4}, Values::values}}, BOTH(op(x[0], {0, 2})), 67},                                         \
    {#op "_transposed", {{{6, 9}, Values::values, Layout::transposed}}, BOTH(op(x[0], {1})), 67},                     \
    {#op "_strided", {{{3, 4, 5}, Values::values, Layout::strided}}, BOTH(op(x[0], {0, 1})), 67},                     \
    {#op "_long", {{{2, 2053}, Values::values}}, BOTH(op(x[0], {1})), 2053},                                          \
    {#op "_scalar", {{{}, Values::values}}, BOTH(op(x[0])), 67},                                                      \
    {#op "_many_columns", {{{67, 33}, Values::values}}, BOTH(op(x[0], {0})), 67}

const AddCases reduce_cases{
    REDUCTION(sum, positive), REDUCTION(mean, positive), REDUCTION(norm, positive), REDUCTION(max, apart),
    REDUCTION(min, apart),
    {"prod_all", {{{3, 5}, Values::positive}}, BOTH(prod(x[0])), 15},
    {"prod_rows", {{{7, 9}, Values::positive}}, BOTH(prod(x[0], {0})), 7},
    {"prod_middle", {{{3, 5, 4}, Values::positive}}, BOTH(prod(x[0], {1}, true)), 5},
    {"prod_with_a_zero", {{{12}, Values::apart}}, BOTH(prod(x[0] - 0.125)), 12},
    {"prod_with_two_zeros", {{{12}, Values::apart}}, BOTH(prod(6 * (x[0] - 0.125) * (x[0] + 0.125))), 12},
    {"prod_nothing", {{{0, 3}}}, BOTH(prod(x[0], {0}))},
    {"sum_nothing", {{{0, 3}}}, BOTH(sum(x[0], {0}))},
    {"sum_empty_result", {{{0, 3}}}, BOTH(sum(x[0], {1}))},
    {"argmax", {{{4, 9, 3}, Values::apart}}, BOTH(argmax(x[0], 1)), 1, true, Derivative::none},
    {"argmax_last", {{{4, 130}, Values::apart}}, BOTH(argmax(x[0], -1, true)), 1, true, Derivative::none},
    {"any", {{{4, 9, 3}, Values::apart}}, BOTH(any(gt(x[0], 5), {1})), 1, true, Derivative::none},
    {"all", {{{4, 9, 3}, Values::apart}}, BOTH(all(lt(x[0], 5), {1}, true)), 1, true, Derivative::none},
    {"argmin", {{{5, 9}, Values::apart}}, BOTH(argmin(x[0], 1)), 1, true, Derivative::none},
    {"logsumexp", {{{4, 9}}}, BOTH(logsumexp(x[0], {1})), 9},
    {"max_ties", {{{4, 9, 3}, Values::ties}}, BOTH(max(x[0], {1})), 9, true, Derivative::kinks},
    {"min_ties", {{{4, 9, 3}, Values::ties}}, BOTH(min(x[0], {1, 0}, true)), 36, true, Derivative::kinks},
    {"argmax_ties", {{{4, 9, 3}, Values::ties}}, BOTH(argmax(x[0], 1)), 1, true, Derivative::none},
    {"argmin_ties", {{{3, 40}, Values::ties}}, BOTH(argmin(x[0], -1, true)), 1, true, Derivative::none},
    {"logsumexp_ends", {{{3, 5, 7}}}, BOTH(logsumexp(x[0], {0, 2}, true)), 35},
    {"var_ends", {{{3, 5, 4}}}, CALL(var(x[0], {.dims = {0, 2}, .correction = 0, .keep_dims = true})),
     "var(x[0], (0, 2), correction=0, keepdim=True)", 67},
    {"logsumexp_all", {{{3, 5, 2}}}, BOTH(logsumexp(x[0])), 30},
    {"var", {{{7, 9}, Values::positive}}, CALL(var(x[0], {.dims = {0}})), "var(x[0], 0)", 67},
    {"var_columns", {{{7, 9}}}, CALL(var(x[0], {.dims = {1}})), "var(x[0], 1)", 67},
    {"var_of_these", {{{3, 5, 4}}}, CALL(var(x[0], {.correction = 0})), "var(x[0], correction=0)", 67},
    {"std", {{{7, 9}}}, CALL(weft::std(x[0], {.dims = {1}, .keep_dims = true})), "std(x[0], 1, keepdim=True)", 67}};
// clang-format on

}  // namespace
}  // namespace weft::test
