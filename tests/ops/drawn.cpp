// SPDX-License-Identifier: Apache-2.0
// Ops that draw random numbers: the seed is set before each call, so that every device draws the same.
#include "core/ops/copy.h"
#include "core/ops/layers/image.h"
#include "core/ops/random.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

using Inputs = std::vector<Tensor>;

const AddCases drawn_cases{
    {"dropout", {{{7, 9}}}, [](const Inputs& x) { return dropout(x[0], 0.4); }},
    {"dropout_transposed",
     {{{6, 5}, Values::normal, Layout::transposed}},
     [](const Inputs& x) { return dropout(x[0], 0.25); }},
    {"bernoulli",
     {{{3, 5}}},
     [](const Inputs& x) {
       return bernoulli({40, 11}, 0.3, x[0].dtype(), x[0].device());
     },
     1,
     true,
     false},
    {"permutation",
     {{{1}, Values::classes, Layout::dense, 1}},
     [](const Inputs& x) { return permutation(100, x[0].device()); },
     1,
     false,
     false},
    {"randint",
     {{{1}, Values::classes, Layout::dense, 1}},
     [](const Inputs& x) {
       return randint({40, 11}, -3, 9, x[0].device());
     },
     1,
     false,
     false},
    {"multinomial",
     {{{3, 7}, Values::simplex}},
     [](const Inputs& x) { return multinomial(x[0], 50); },
     1,
     false,
     false},
    // Images are bytes, whatever the result.
    {"image_normalize",
     {{{2, 5, 6, 3}, Values::classes, Layout::dense, 256}},
     [](const Inputs& x) {
       return image_normalize(x[0].to(DType::u8), {}, {0.5f, 0.25f, 0.75f}, {0.25f, 0.5f, 0.125f}, 4, 8, DType::f64);
     },
     1,
     false,
     false},
    {"image_mix",
     {{{3, 5, 4, 3}}},
     [](const Inputs& x) { return image_mix(x[0], {.top = 1, .bottom = 5, .left = 0, .right = 3}, 0.3); },
     1,
     true,
     false},
    {"image_mix_copied",
     {{{2, 4, 8, 1}, Values::normal, Layout::transposed}},
     [](const Inputs& x) { return image_mix(x[0], {.top = 0, .bottom = 2, .left = 3, .right = 8}, 0); },
     1,
     true,
     false},
    {"mixed_targets",
     {{{6}, Values::classes, Layout::dense, 5}},
     [](const Inputs& x) { return mixed_targets(x[0], 5, 0.75); },
     1,
     false,
     false},
};

}  // namespace
}  // namespace weft::test
