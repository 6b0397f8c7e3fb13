// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/pool2d.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

// clang-format off
const AddCases pool2d_cases{
    {"max_pool2d", {{{2, 6, 6, 3}, Values::apart}}, CALL(max_pool2d(x[0])), "images(F.max_pool2d, x[0], 2)"},
    {"max_pool2d_overlapping", {{{1, 7, 8, 3}, Values::apart}},
     CALL(max_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})),
     "images(F.max_pool2d, x[0], 3, 2, 1)", 4},
    {"max_pool2d_odd", {{{2, 5, 9, 2}, Values::apart}},
     CALL(max_pool2d(x[0], {.kernel = {2, 4}, .stride = {3, 1}, .padding = {1, 2}})),
     "images(F.max_pool2d, x[0], (2, 4), (3, 1), (1, 2))", 8},
    {"avg_pool2d", {{{2, 6, 6, 3}}}, CALL(avg_pool2d(x[0])), "images(F.avg_pool2d, x[0], 2)", 4},
    {"avg_pool2d_overlapping", {{{2, 6, 6, 3}}}, CALL(avg_pool2d(x[0], {.kernel = 3, .stride = 1})),
     "images(F.avg_pool2d, x[0], 3, 1)", 9},
    {"avg_pool2d_padded", {{{1, 7, 8, 3}}},
     CALL(avg_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})),
     "images(F.avg_pool2d, x[0], 3, 2, 1)", 9},
    {"max_pool2d_ceil", {{{1, 6, 8, 3}, Values::apart}},
     CALL(max_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true})),
     "images(F.max_pool2d, x[0], 3, 2, ceil_mode=True)"},
    {"avg_pool2d_ceil", {{{1, 6, 8, 3}}},
     CALL(avg_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 3}, .padding = {0, 1}, .ceil_mode = true})),
     "images(F.avg_pool2d, x[0], 3, (2, 3), (0, 1), ceil_mode=True)", 9},
    {"max_pool2d_ceil_of_five", {{{1, 5, 1, 2}, Values::apart}},
     CALL(max_pool2d(x[0], {.kernel = {2, 1}, .ceil_mode = true})),
     "images(F.max_pool2d, x[0], (2, 1), ceil_mode=True)"},
    {"avg_pool2d_ceil_of_five", {{{1, 5, 1, 2}}}, CALL(avg_pool2d(x[0], {.kernel = {2, 1}, .ceil_mode = true})),
     "images(F.avg_pool2d, x[0], (2, 1), ceil_mode=True)", 2},
    // A third window would begin in the padding; of six rows it has a divisor that counts the padding.
    {"avg_pool2d_ceil_padded", {{{1, 5, 2, 1}}},
     CALL(avg_pool2d(x[0], {.kernel = {3, 1}, .padding = {1, 0}, .ceil_mode = true})),
     "images(F.avg_pool2d, x[0], (3, 1), padding=(1, 0), ceil_mode=True)", 3},
    {"avg_pool2d_ceil_of_six", {{{1, 6, 2, 1}}},
     CALL(avg_pool2d(x[0], {.kernel = {3, 1}, .padding = {1, 0}, .ceil_mode = true})),
     "images(F.avg_pool2d, x[0], (3, 1), padding=(1, 0), ceil_mode=True)", 3},
    {"avg_pool2d_padding_not_counted", {{{1, 7, 8, 3}}},
     CALL(avg_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .count_include_pad = false})),
     "images(F.avg_pool2d, x[0], 3, 2, 1, count_include_pad=False)", 9},
    {"adaptive_avg_pool2d_global", {{{3, 5, 4, 7}}}, CALL(adaptive_avg_pool2d(x[0])),
     "images(F.adaptive_avg_pool2d, x[0], 1)", 20},
    {"adaptive_avg_pool2d", {{{2, 7, 5, 3}}}, CALL(adaptive_avg_pool2d(x[0], {3, 2})),
     "images(F.adaptive_avg_pool2d, x[0], (3, 2))", 12},
    {"adaptive_avg_pool2d_up", {{{1, 2, 3, 3}}}, CALL(adaptive_avg_pool2d(x[0], {5, 4})),
     "images(F.adaptive_avg_pool2d, x[0], (5, 4))", 12},
    {"max_pool2d_no_images", {{{0, 6, 6, 3}}}, CALL(max_pool2d(x[0])), "images(F.max_pool2d, x[0], 2)"},
    {"avg_pool2d_no_images", {{{0, 6, 6, 3}}}, CALL(avg_pool2d(x[0])), "images(F.avg_pool2d, x[0], 2)"},
    {"adaptive_avg_pool2d_no_images", {{{0, 6, 6, 3}}}, CALL(adaptive_avg_pool2d(x[0])),
     "images(F.adaptive_avg_pool2d, x[0], 1)"}};
// clang-format on

}  // namespace
}  // namespace weft::test
