// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/pool2d.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

using Inputs = std::vector<Tensor>;

const AddCases pool2d_cases{
    {"max_pool2d", {{{2, 6, 6, 3}, Values::apart}}, [](const Inputs& x) { return max_pool2d(x[0]); }},
    {"max_pool2d_overlapping",
     {{{1, 7, 8, 3}, Values::apart}},
     [](const Inputs& x) {
       return max_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
     },
     4},
    {"max_pool2d_odd",
     {{{2, 5, 9, 2}, Values::apart}},
     [](const Inputs& x) {
       return max_pool2d(x[0], {.kernel = {2, 4}, .stride = {3, 1}, .padding = {1, 2}});
     },
     8},
    {"avg_pool2d", {{{2, 6, 6, 3}}}, [](const Inputs& x) { return avg_pool2d(x[0]); }, 4},
    {"avg_pool2d_padded",
     {{{1, 7, 8, 3}}},
     [](const Inputs& x) {
       return avg_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
     },
     9},
    {"max_pool2d_ceil",
     {{{1, 6, 8, 3}, Values::apart}},
     [](const Inputs& x) {
       return max_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true});
     }},
    {"avg_pool2d_ceil",
     {{{1, 6, 8, 3}}},
     [](const Inputs& x) {
       return avg_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 3}, .padding = {0, 1}, .ceil_mode = true});
     },
     9},
    {"avg_pool2d_padding_not_counted",
     {{{1, 7, 8, 3}}},
     [](const Inputs& x) {
       return avg_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .count_include_pad = false});
     },
     9},
    {"adaptive_avg_pool2d_global", {{{3, 5, 4, 7}}}, [](const Inputs& x) { return adaptive_avg_pool2d(x[0]); }, 20},
    {"adaptive_avg_pool2d",
     {{{2, 7, 5, 3}}},
     [](const Inputs& x) {
       return adaptive_avg_pool2d(x[0], {3, 2});
     },
     12},
    {"adaptive_avg_pool2d_up",
     {{{1, 2, 3, 3}}},
     [](const Inputs& x) {
       return adaptive_avg_pool2d(x[0], {5, 4});
     },
     12},
    {"max_pool2d_no_images", {{{0, 6, 6, 3}}}, [](const Inputs& x) { return max_pool2d(x[0]); }},
    {"avg_pool2d_no_images", {{{0, 6, 6, 3}}}, [](const Inputs& x) { return avg_pool2d(x[0]); }},
    {"adaptive_avg_pool2d_no_images", {{{0, 6, 6, 3}}}, [](const Inputs& x) { return adaptive_avg_pool2d(x[0]); }},
};

}  // namespace
}  // namespace weft::test
