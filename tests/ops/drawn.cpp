// SPDX-License-Identifier: Apache-2.0
// Ops that draw random numbers: the seed is set before each call, so that every device draws the same.
#include "core/ops/binary.h"
#include "core/ops/copy.h"
#include "core/ops/layers/activations.h"
#include "core/ops/layers/image.h"
#include "core/ops/random.h"
#include "core/random.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

/// x / 0.6: what feature_dropout() keeps of x, and x / 0.6 where the same draw drops.
Tensor with_dropped_channels(const Tensor& x) {
  manual_seed(5);
  const Tensor kept = feature_dropout(x, 0.4);
  manual_seed(5);
  return kept + (1 / 0.6 - feature_dropout(Tensor::ones(x.sizes(), x.dtype(), x.device()), 0.4)) * x;
}

// clang-format off
const AddCases drawn_cases{
    {"dropout", {{{7, 9}}}, CALL(dropout(x[0], 0.4)), "# draws other numbers"},
    {"dropout_transposed", {{{6, 5}, Values::normal, Layout::transposed}}, CALL(dropout(x[0], 0.25)),
     "# draws other numbers"},
    {"feature_dropout", {{{3, 4, 5}}}, CALL(with_dropped_channels(x[0])), "x[0] / 0.6"},
    {"alpha_dropout", {{{7, 9}}}, CALL(alpha_dropout(x[0], 0.4)), "# draws other numbers"},
    {"bernoulli", {{{3, 5}}}, CALL(bernoulli({40, 11}, 0.3, x[0].dtype(), x[0].device())), "# draws other numbers", 1,
     true, Derivative::none},
    {"permutation", {{{1}, Values::classes, Layout::dense, 1}}, CALL(permutation(100, x[0].device())),
     "# draws other numbers", 1, false, Derivative::none},
    {"randint", {{{1}, Values::classes, Layout::dense, 1}}, CALL(randint({40, 11}, -3, 9, x[0].device())),
     "# draws other numbers", 1, false, Derivative::none},
    {"multinomial", {{{3, 7}, Values::simplex}}, CALL(multinomial(x[0], 50)), "# draws other numbers", 1, false,
     Derivative::none},
    // Images are bytes, whatever the result.
    {"image_normalize", {{{2, 5, 6, 3}, Values::classes, Layout::dense, 256}},
     CALL(image_normalize(x[0].to(DType::u8), {}, {0.5f, 0.25f, 0.75f}, {0.25f, 0.5f, 0.125f}, 4, 8, DType::f64)),
     "(F.pad(x[0].double(), (0, 0, 1, 1))[:, :4] / 255 - tensor([0.5, 0.25, 0.75])) / tensor([0.25, 0.5, 0.125])", 1,
     false, Derivative::none},
    {"image_mix", {{{3, 5, 4, 3}}}, CALL(image_mix(x[0], {.top = 1, .bottom = 5, .left = 0, .right = 3}, 0.3)),
     "mixed(x[0], 1, 5, 0, 3, 0.3)", 1, true, Derivative::none},
    {"image_mix_copied", {{{2, 4, 8, 1}, Values::normal, Layout::transposed}},
     CALL(image_mix(x[0], {.top = 0, .bottom = 2, .left = 3, .right = 8}, 0)), "mixed(x[0], 0, 2, 3, 8, 0)", 1, true,
     Derivative::none},
    {"mixed_targets", {{{6}, Values::classes, Layout::dense, 5}}, CALL(mixed_targets(x[0], 5, 0.75)),
     "0.75 * one_hot(x[0], 5) + 0.25 * one_hot(x[0].roll(1), 5)", 1, false, Derivative::none}};
// clang-format on

}  // namespace
}  // namespace weft::test
