// SPDX-License-Identifier: Apache-2.0
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/copy.h"
#include "core/ops/gather.h"
#include "core/ops/layers/embedding_bag.h"
#include "core/ops/rearrange.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

using Inputs = std::vector<Tensor>;

const AddCases views_cases{
    {"reshape",
     {{{4, 6}}},
     [](const Inputs& x) {
       return x[0].reshape({2, -1, 3});
     }},
    {"reshape_transposed",
     {{{4, 6}, Values::normal, Layout::transposed}},
     [](const Inputs& x) {
       return x[0].reshape({3, 8});
     }},
    {"reshape_strided",
     {{{4, 6}, Values::normal, Layout::strided}},
     [](const Inputs& x) {
       return x[0].reshape({2, 12});
     }},
    {"flatten", {{{2, 3, 4, 5}}}, [](const Inputs& x) { return x[0].flatten(1, -2); }},
    {"unsqueeze", {{{2, 4}}}, [](const Inputs& x) { return x[0].unsqueeze(1).unsqueeze(-1); }},
    {"contiguous", {{{4, 6}, Values::normal, Layout::transposed}}, [](const Inputs& x) { return x[0].contiguous(); }},
    {"squeeze", {{{2, 1, 4}}}, [](const Inputs& x) { return x[0].squeeze(1).unsqueeze(-1).unsqueeze(0); }},
    {"permute",
     {{{2, 3, 4}}},
     [](const Inputs& x) {
       return x[0].permute({2, 0, 1});
     }},
    {"permute_dense",
     {{{5, 33, 34}}},
     [](const Inputs& x) {
       return x[0].permute({0, 2, 1}).contiguous();
     }},
    {"transpose", {{{2, 3, 4}}}, [](const Inputs& x) { return x[0].transpose(0, -1); }},
    {"slice", {{{5, 8}}}, [](const Inputs& x) { return x[0].slice(1, 1, 3, 2).slice(0, -3, 2); }},
    {"slice_empty", {{{5, 8}}}, [](const Inputs& x) { return x[0].slice(1, 8, 0); }},
    {"select", {{{5, 8}}}, [](const Inputs& x) { return x[0].select(0, -2); }},
    {"expand",
     {{{1, 3}}},
     [](const Inputs& x) {
       return x[0].expand({4, 5, 3});
     },
     20},
    {"expand_scalar",
     {{{}}},
     [](const Inputs& x) {
       return x[0].expand({4, 5});
     },
     20},
    {"clone", {{{4, 6}, Values::normal, Layout::transposed}}, [](const Inputs& x) { return x[0].clone(); }},
    {"cast", {{{4, 6}}}, [](const Inputs& x) { return cast(cast(x[0], DType::f64), x[0].dtype()); }},
    {"to_cpu",
     {{{4, 6}, Values::normal, Layout::transposed}},
     [](const Inputs& x) { return x[0].to(Device{}).to(x[0].device()); },
     1,
     true,
     true,
     {"to"}},
    {"concat", {{{2, 3}}, {{2, 1}}, {{2, 4}}}, [](const Inputs& x) { return concat(x, 1); }},
    {"concat_rows", {{{2, 3}}, {{0, 3}}, {{1, 3}}}, [](const Inputs& x) { return concat(x, -2); }},
    {"stack", {{{2, 3}}, {{2, 3}, Values::normal, Layout::transposed}}, [](const Inputs& x) { return stack(x, 1); }},
    {"pad", {{{2, 3, 4}}}, [](const Inputs& x) { return pad(pad(x[0], -1, 1, 2), 0, 0, 3); }},
    {"embedding_bag",
     {{{6, 3}}, {{4, 5}, Values::classes, Layout::dense, 6}},
     [](const Inputs& x) { return embedding_bag(x[0], x[1], {.padding = 2}); },
     20},
    {"embedding_bag_max",
     {{{6, 3}, Values::apart}, {{4, 5}, Values::classes, Layout::dense, 6}},
     [](const Inputs& x) { return embedding_bag(x[0], x[1], {.mode = Bag::max, .padding = 1}); },
     20},
    {"embedding_bag_offsets",
     {{{6, 3}}, {{9}, Values::classes, Layout::dense, 6}},
     [](const Inputs& x) {
       const Tensor offsets = Tensor::from(std::vector<int64_t>{0, 4, 4, 5}, x[1].device());
       return embedding_bag(x[0], x[1], offsets, {.padding = 2});
     },
     9},
    {"index_select",
     {{{5, 4}}, {{7}, Values::classes, Layout::dense, 5}},
     [](const Inputs& x) { return index_select(x[0], 0, x[1]); },
     7},
    {"index_select_columns",
     {{{3, 5, 2}}, {{9}, Values::classes, Layout::dense, 5}},
     [](const Inputs& x) { return index_select(x[0], 1, x[1]); },
     9},
    {"index_select_nothing",
     {{{5, 4}}, {{0}, Values::classes, Layout::dense, 5}},
     [](const Inputs& x) { return index_select(x[0], 0, x[1]); }},
    {"gather",
     {{{4, 6}}, {{4, 9}, Values::classes, Layout::dense, 6}},
     [](const Inputs& x) { return gather(x[0], 1, x[1]); },
     9},
    {"gather_rows",
     {{{5, 3}}, {{2, 3}, Values::classes, Layout::dense, 5}},
     [](const Inputs& x) { return gather(x[0], 0, x[1]); },
     2},
    {"gather_short_index",
     {{{5, 3, 4}}, {{2, 7, 3}, Values::classes, Layout::dense, 3}},
     [](const Inputs& x) { return gather(x[0], 1, x[1]); },
     7},
    {"scatter_add_short_index",
     {{{4, 6, 5}}, {{3, 9, 2}, Values::classes, Layout::dense, 6}, {{4, 9, 3}}},
     [](const Inputs& x) { return scatter_add(x[0], 1, x[1], x[2]); },
     9},
    {"scatter_short_index",
     {{{4, 6, 5}}, {{3, 9, 2}, Values::classes, Layout::dense, 6}, {{3, 10, 2}}},
     [](const Inputs& x) { return scatter(x[0], 1, x[1], x[2]); }},
    {"repeat_in_front",
     {{{2, 1, 3, 2, 2}}},
     [](const Inputs& x) {
       return repeat(x[0], {3, 2, 2, 1, 2, 2});
     },
     48},
    {"scatter_add",
     {{{4, 6}}, {{4, 9}, Values::classes, Layout::dense, 6}, {{4, 9}}},
     [](const Inputs& x) { return scatter_add(x[0], 1, x[1], x[2]); },
     9},
    {"scatter",
     {{{4, 6}}, {{4, 9}, Values::classes, Layout::dense, 6}, {{4, 9}}},
     [](const Inputs& x) { return scatter(x[0], 1, x[1], x[2]); }},
    {"scatter_value",
     {{{5, 3}}, {{2, 3}, Values::classes, Layout::dense, 5}},
     [](const Inputs& x) { return scatter(x[0], 0, x[1], -2); }},
    {"flip",
     {{{3, 4, 5}}},
     [](const Inputs& x) {
       return flip(x[0], {0, -1});
     }},
    {"roll", {{{3, 7}}}, [](const Inputs& x) { return roll(x[0], -2, 1); }},
    {"repeat",
     {{{2, 3}}},
     [](const Inputs& x) {
       return repeat(x[0], {3, 2});
     },
     6},
    {"split",
     {{{7, 3}}},
     [](const Inputs& x) {
       return split(x[0], {2, 4, 1})[1];
     }},
    {"chunk", {{{3, 7}}}, [](const Inputs& x) { return chunk(x[0], 3, 1).back(); }},
    {"tril", {{{2, 4, 5}}}, [](const Inputs& x) { return tril(x[0], -1); }},
    {"triu", {{{4, 3}}}, [](const Inputs& x) { return triu(x[0]); }},
    {"masked_fill", {{{4, 5}}, {{4, 5}, Values::boolean}}, [](const Inputs& x) { return masked_fill(x[0], x[1], -3); }},
    {"one_hot",
     {{{5, 3}, Values::classes, Layout::dense, 7}},
     [](const Inputs& x) { return one_hot(x[0], 7, DType::f64); },
     1,
     false,
     false},
};

}  // namespace
}  // namespace weft::test
