// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

using Inputs = std::vector<Tensor>;

const AddCases reduce_cases{
    {"sum_all", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return sum(x[0]); }, 67},
    {"sum_rows", {{{7, 9}, Values::positive}}, [](const Inputs& x) { return sum(x[0], {0}); }, 67},
    {"sum_columns", {{{7, 9}, Values::positive}}, [](const Inputs& x) { return sum(x[0], {-1}); }, 67},
    {"sum_middle", {{{3, 5, 4}, Values::positive}}, [](const Inputs& x) { return sum(x[0], {1}, true); }, 67},
    {"sum_ends",
     {{{3, 5, 4}, Values::positive}},
     [](const Inputs& x) {
       return sum(x[0], {0, 2});
     },
     67},
    {"sum_transposed",
     {{{6, 9}, Values::positive, Layout::transposed}},
     [](const Inputs& x) { return sum(x[0], {1}); },
     67},
    {"sum_strided",
     {{{3, 4, 5}, Values::positive, Layout::strided}},
     [](const Inputs& x) {
       return sum(x[0], {0, 1});
     },
     67},
    {"sum_long", {{{2, 2053}, Values::positive}}, [](const Inputs& x) { return sum(x[0], {1}); }, 2053},
    {"sum_scalar", {{{}, Values::positive}}, [](const Inputs& x) { return sum(x[0]); }, 67},
    {"sum_many_columns", {{{67, 33}, Values::positive}}, [](const Inputs& x) { return sum(x[0], {0}); }, 67},
    {"mean_all", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return mean(x[0]); }, 67},
    {"mean_rows", {{{7, 9}, Values::positive}}, [](const Inputs& x) { return mean(x[0], {0}); }, 67},
    {"mean_columns", {{{7, 9}, Values::positive}}, [](const Inputs& x) { return mean(x[0], {-1}); }, 67},
    {"mean_middle", {{{3, 5, 4}, Values::positive}}, [](const Inputs& x) { return mean(x[0], {1}, true); }, 67},
    {"mean_ends",
     {{{3, 5, 4}, Values::positive}},
     [](const Inputs& x) {
       return mean(x[0], {0, 2});
     },
     67},
    {"mean_transposed",
     {{{6, 9}, Values::positive, Layout::transposed}},
     [](const Inputs& x) { return mean(x[0], {1}); },
     67},
    {"mean_strided",
     {{{3, 4, 5}, Values::positive, Layout::strided}},
     [](const Inputs& x) {
       return mean(x[0], {0, 1});
     },
     67},
    {"mean_long", {{{2, 2053}, Values::positive}}, [](const Inputs& x) { return mean(x[0], {1}); }, 2053},
    {"mean_scalar", {{{}, Values::positive}}, [](const Inputs& x) { return mean(x[0]); }, 67},
    {"mean_many_columns", {{{67, 33}, Values::positive}}, [](const Inputs& x) { return mean(x[0], {0}); }, 67},
    {"norm_all", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return norm(x[0]); }, 67},
    {"norm_rows", {{{7, 9}, Values::positive}}, [](const Inputs& x) { return norm(x[0], {0}); }, 67},
    {"norm_columns", {{{7, 9}, Values::positive}}, [](const Inputs& x) { return norm(x[0], {-1}); }, 67},
    {"norm_middle", {{{3, 5, 4}, Values::positive}}, [](const Inputs& x) { return norm(x[0], {1}, true); }, 67},
    {"norm_ends",
     {{{3, 5, 4}, Values::positive}},
     [](const Inputs& x) {
       return norm(x[0], {0, 2});
     },
     67},
    {"norm_transposed",
     {{{6, 9}, Values::positive, Layout::transposed}},
     [](const Inputs& x) { return norm(x[0], {1}); },
     67},
    {"norm_strided",
     {{{3, 4, 5}, Values::positive, Layout::strided}},
     [](const Inputs& x) {
       return norm(x[0], {0, 1});
     },
     67},
    {"norm_long", {{{2, 2053}, Values::positive}}, [](const Inputs& x) { return norm(x[0], {1}); }, 2053},
    {"norm_scalar", {{{}, Values::positive}}, [](const Inputs& x) { return norm(x[0]); }, 67},
    {"norm_many_columns", {{{67, 33}, Values::positive}}, [](const Inputs& x) { return norm(x[0], {0}); }, 67},
    {"max_all", {{{3, 5}, Values::apart}}, [](const Inputs& x) { return max(x[0]); }, 67},
    {"max_rows", {{{7, 9}, Values::apart}}, [](const Inputs& x) { return max(x[0], {0}); }, 67},
    {"max_columns", {{{7, 9}, Values::apart}}, [](const Inputs& x) { return max(x[0], {-1}); }, 67},
    {"max_middle", {{{3, 5, 4}, Values::apart}}, [](const Inputs& x) { return max(x[0], {1}, true); }, 67},
    {"max_ends",
     {{{3, 5, 4}, Values::apart}},
     [](const Inputs& x) {
       return max(x[0], {0, 2});
     },
     67},
    {"max_transposed",
     {{{6, 9}, Values::apart, Layout::transposed}},
     [](const Inputs& x) { return max(x[0], {1}); },
     67},
    {"max_strided",
     {{{3, 4, 5}, Values::apart, Layout::strided}},
     [](const Inputs& x) {
       return max(x[0], {0, 1});
     },
     67},
    {"max_long", {{{2, 2053}, Values::apart}}, [](const Inputs& x) { return max(x[0], {1}); }, 2053},
    {"max_scalar", {{{}, Values::apart}}, [](const Inputs& x) { return max(x[0]); }, 67},
    {"max_many_columns", {{{67, 33}, Values::apart}}, [](const Inputs& x) { return max(x[0], {0}); }, 67},
    {"min_all", {{{3, 5}, Values::apart}}, [](const Inputs& x) { return min(x[0]); }, 67},
    {"min_rows", {{{7, 9}, Values::apart}}, [](const Inputs& x) { return min(x[0], {0}); }, 67},
    {"min_columns", {{{7, 9}, Values::apart}}, [](const Inputs& x) { return min(x[0], {-1}); }, 67},
    {"min_middle", {{{3, 5, 4}, Values::apart}}, [](const Inputs& x) { return min(x[0], {1}, true); }, 67},
    {"min_ends",
     {{{3, 5, 4}, Values::apart}},
     [](const Inputs& x) {
       return min(x[0], {0, 2});
     },
     67},
    {"min_transposed",
     {{{6, 9}, Values::apart, Layout::transposed}},
     [](const Inputs& x) { return min(x[0], {1}); },
     67},
    {"min_strided",
     {{{3, 4, 5}, Values::apart, Layout::strided}},
     [](const Inputs& x) {
       return min(x[0], {0, 1});
     },
     67},
    {"min_long", {{{2, 2053}, Values::apart}}, [](const Inputs& x) { return min(x[0], {1}); }, 2053},
    {"min_scalar", {{{}, Values::apart}}, [](const Inputs& x) { return min(x[0]); }, 67},
    {"min_many_columns", {{{67, 33}, Values::apart}}, [](const Inputs& x) { return min(x[0], {0}); }, 67},
    {"prod_all", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return prod(x[0]); }, 15},
    {"prod_rows", {{{7, 9}, Values::positive}}, [](const Inputs& x) { return prod(x[0], {0}); }, 7},
    {"prod_middle", {{{3, 5, 4}, Values::positive}}, [](const Inputs& x) { return prod(x[0], {1}, true); }, 5},
    {"prod_with_a_zero", {{{12}, Values::apart}}, [](const Inputs& x) { return prod(x[0] - 0.125); }, 12},
    {"prod_with_two_zeros",
     {{{12}, Values::apart}},
     [](const Inputs& x) { return prod(6 * (x[0] - 0.125) * (x[0] + 0.125)); },
     12},
    {"prod_nothing", {{{0, 3}}}, [](const Inputs& x) { return prod(x[0], {0}); }},
    {"sum_nothing", {{{0, 3}}}, [](const Inputs& x) { return sum(x[0], {0}); }},
    {"sum_empty_result", {{{0, 3}}}, [](const Inputs& x) { return sum(x[0], {1}); }},
    {"argmax", {{{4, 9, 3}, Values::apart}}, [](const Inputs& x) { return argmax(x[0], 1); }, 1, true, false},
    {"argmax_last",
     {{{4, 130}, Values::apart}},
     [](const Inputs& x) { return argmax(x[0], -1, true); },
     1,
     true,
     false},
    {"any", {{{4, 9, 3}, Values::apart}}, [](const Inputs& x) { return any(gt(x[0], 5), {1}); }, 1, true, false},
    {"all", {{{4, 9, 3}, Values::apart}}, [](const Inputs& x) { return all(lt(x[0], 5), {1}, true); }, 1, true, false},
    {"argmin", {{{5, 9}, Values::apart}}, [](const Inputs& x) { return argmin(x[0], 1); }, 1, true, false},
    {"logsumexp", {{{4, 9}}}, [](const Inputs& x) { return logsumexp(x[0], {1}); }, 9},
    {"logsumexp_all", {{{3, 5, 2}}}, [](const Inputs& x) { return logsumexp(x[0]); }, 30},
    {"var", {{{7, 9}, Values::positive}}, [](const Inputs& x) { return var(x[0], {.dims = {0}}); }, 67},
    {"var_of_these", {{{3, 5, 4}}}, [](const Inputs& x) { return var(x[0], {.correction = 0}); }, 67},
    {"std", {{{7, 9}}}, [](const Inputs& x) { return weft::std(x[0], {.dims = {1}, .keep_dims = true}); }, 67},
};

}  // namespace
}  // namespace weft::test
