// SPDX-License-Identifier: Apache-2.0
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/copy.h"
#include "core/ops/gather.h"
#include "core/ops/layers/embedding_bag.h"
#include "core/ops/rearrange.h"
#include "core/ops/sort.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

std::vector<Tensor> reversed(const std::vector<Tensor>& parts) { return {parts.rbegin(), parts.rend()}; }

// clang-format off
const AddCases views_cases{
    {"reshape", {{{4, 6}}}, CALL(x[0].reshape({2, -1, 3})), "x[0].reshape(2, -1, 3)"},
    {"reshape_transposed", {{{4, 6}, Values::normal, Layout::transposed}}, CALL(x[0].reshape({3, 8})),
     "x[0].reshape(3, 8)"},
    {"reshape_strided", {{{4, 6}, Values::normal, Layout::strided}}, CALL(x[0].reshape({2, 12})),
     "x[0].reshape(2, 12)"},
    {"flatten", {{{2, 3, 4, 5}}}, BOTH(x[0].flatten(1, -2))},
    {"unsqueeze", {{{2, 4}}}, BOTH(x[0].unsqueeze(1).unsqueeze(-1))},
    {"contiguous", {{{4, 6}, Values::normal, Layout::transposed}}, BOTH(x[0].contiguous())},
    {"squeeze", {{{2, 1, 4}}}, BOTH(x[0].squeeze(1).unsqueeze(-1).unsqueeze(0))},
    {"permute", {{{2, 3, 4}}}, CALL(x[0].permute({2, 0, 1})), "x[0].permute(2, 0, 1)"},
    {"permute_dense", {{{5, 33, 34}}}, CALL(x[0].permute({0, 2, 1}).contiguous()), "x[0].permute(0, 2, 1)"},
    {"transpose", {{{2, 3, 4}}}, BOTH(x[0].transpose(0, -1))},
    {"slice", {{{5, 8}}}, CALL(x[0].slice(1, 1, 3, 2).slice(0, -3, 2)), "x[0][2:4, 1:7:2]"},
    {"slice_empty", {{{5, 8}}}, CALL(x[0].slice(1, 8, 0)), "x[0][:, 8:]"},
    {"select", {{{5, 8}}}, BOTH(x[0].select(0, -2))},
    {"expand", {{{1, 3}}}, CALL(x[0].expand({4, 5, -1})), "x[0].expand(4, 5, -1)", 20},
    {"expand_scalar", {{{}}}, CALL(x[0].expand({4, 5})), "x[0].expand(4, 5)", 20},
    {"clone", {{{4, 6}, Values::normal, Layout::transposed}}, BOTH(x[0].clone())},
    {"cast", {{{4, 6}}}, CALL(cast(cast(x[0], DType::f64), x[0].dtype())), "x[0]"},
    {"to_cpu", {{{4, 6}, Values::normal, Layout::transposed}}, CALL(x[0].to(Device{}).to(x[0].device())), "x[0]", 1,
     true, Derivative::smooth, {"to"}},
    {"concat", {{{2, 3}}, {{2, 1}}, {{2, 4}}}, BOTH(concat(x, 1))},
    {"concat_rows", {{{2, 3}}, {{0, 3}}, {{1, 3}}}, BOTH(concat(x, -2))},
    {"stack", {{{2, 3}}, {{2, 3}, Values::normal, Layout::transposed}}, BOTH(stack(x, 1))},
    {"pad", {{{2, 3, 4}}}, CALL(pad(pad(x[0], -1, 1, 2), 0, 0, 3)), "F.pad(x[0], (1, 2, 0, 0, 0, 3))"},
    {"embedding_bag", {{{6, 3}}, {{4, 5}, Values::classes, Layout::dense, 6}},
     CALL(embedding_bag(x[0], x[1], {.padding = 2})), "embedding_bag(x[1], x[0], mode='mean', padding_idx=2)", 20},
    {"embedding_bag_max", {{{6, 3}, Values::apart}, {{4, 5}, Values::classes, Layout::dense, 6}},
     CALL(embedding_bag(x[0], x[1], {.mode = Bag::max, .padding = 1})),
     "embedding_bag(x[1], x[0], mode='max', padding_idx=1)", 20},
    {"embedding_bag_offsets", {{{6, 3}}, {{9}, Values::classes, Layout::dense, 6}},
     CALL(embedding_bag(x[0], x[1], Tensor::from<int64_t>({0, 4, 4, 5}).to(x[1].device()), {.padding = 2})),
     "embedding_bag(x[1], x[0], tensor([0, 4, 4, 5]), mode='mean', padding_idx=2)", 9},
    {"index_select", {{{5, 4}}, {{7}, Values::classes, Layout::dense, 5}}, BOTH(index_select(x[0], 0, x[1])), 7},
    {"index_select_columns", {{{3, 5, 2}}, {{9}, Values::classes, Layout::dense, 5}}, BOTH(index_select(x[0], 1, x[1])),
     9},
    {"index_select_nothing", {{{5, 4}}, {{0}, Values::classes, Layout::dense, 5}}, BOTH(index_select(x[0], 0, x[1]))},
    {"gather", {{{4, 6}}, {{4, 9}, Values::classes, Layout::dense, 6}}, BOTH(gather(x[0], 1, x[1])), 9},
    {"gather_rows", {{{5, 3}}, {{2, 3}, Values::classes, Layout::dense, 5}}, BOTH(gather(x[0], 0, x[1])), 2},
    {"gather_short_index", {{{5, 3, 4}}, {{2, 7, 3}, Values::classes, Layout::dense, 3}}, BOTH(gather(x[0], 1, x[1])),
     7},
    {"scatter_add_short_index", {{{4, 6, 5}}, {{3, 9, 2}, Values::classes, Layout::dense, 6}, {{4, 9, 3}}},
     CALL(scatter_add(x[0], 1, x[1], x[2])),
     "scatter_add(x[0], 1, x[1], x[2][:3, :, :2])", 9},
    {"scatter_short_index", {{{4, 6, 5}}, {{3, 9, 2}, Values::classes, Layout::dense, 6}, {{3, 10, 2}}},
     CALL(scatter(x[0], 1, x[1], x[2])), "# keeps any of several values for one place"},
    {"repeat_in_front", {{{2, 1, 3, 2, 2}}}, CALL(repeat(x[0], {3, 2, 2, 1, 2, 2})), "x[0].repeat(3, 2, 2, 1, 2, 2)",
     48},
    {"scatter_add", {{{4, 6}}, {{4, 9}, Values::classes, Layout::dense, 6}, {{4, 9}}},
     BOTH(scatter_add(x[0], 1, x[1], x[2])), 9},
    {"scatter", {{{4, 6}}, {{4, 9}, Values::classes, Layout::dense, 6}, {{4, 9}}}, CALL(scatter(x[0], 1, x[1], x[2])),
     "# keeps any of several values for one place"},
    {"scatter_once", {{{5, 6}}, {{5, 6}, Values::apart, Layout::dense, 0, false}, {{5, 4}}},
     CALL(scatter(x[0], 1, argsort(x[1], 1).slice(1, 0, 4), x[2])), "scatter(x[0], 1, argsort(x[1], 1)[:, :4], x[2])"},
    {"scatter_value", {{{5, 3}}, {{2, 3}, Values::classes, Layout::dense, 5}}, BOTH(scatter(x[0], 0, x[1], -2))},
    {"flip", {{{3, 4, 5}}}, BOTH(flip(x[0], {0, -1}))},
    {"roll", {{{3, 7}}}, BOTH(roll(x[0], -2, 1))},
    {"repeat", {{{2, 3}}}, CALL(repeat(x[0], {3, 2})), "x[0].repeat(3, 2)", 6},
    {"split", {{{7, 3}}}, CALL(concat(reversed(split(x[0], {2, 4, 1})))), "concat(split(x[0], [2, 4, 1])[::-1])"},
    {"chunk", {{{3, 7}}}, CALL(concat(reversed(chunk(x[0], 3, 1)), 1)), "concat(chunk(x[0], 3, 1)[::-1], 1)"},
    {"tril", {{{2, 4, 5}}}, BOTH(tril(x[0], -1))},
    {"triu", {{{4, 3}}}, BOTH(triu(x[0]))},
    {"masked_fill", {{{4, 5}}, {{4, 5}, Values::boolean}}, BOTH(masked_fill(x[0], x[1], -3))},
    {"masked_fill_broadcast", {{{3, 4, 6}}, {{4, 6}, Values::boolean}}, BOTH(masked_fill(x[0], x[1], -1.5))},
    {"where_numbers", {{{4, 6}, Values::boolean}, {{4, 6}}},
     CALL(concat({where(x[0], x[1], 0.5), where(x[0], 0.5, x[1])})),
     "concat([where(x[0], x[1], 0.5), where(x[0], 0.5, x[1])])"},
    {"triu_above", {{{2, 4, 5}}}, BOTH(triu(x[0], 1))},
    {"one_hot", {{{5, 3}, Values::classes, Layout::dense, 7}}, CALL(one_hot(x[0], 7, DType::f64)), "one_hot(x[0], 7)",
     1, false, Derivative::none}};
// clang-format on

}  // namespace
}  // namespace weft::test
