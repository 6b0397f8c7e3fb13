// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/rotary.h"

#include "tests/ops/op_case.h"
#include "tests/support/error_text.h"

namespace weft::test {
namespace {

// clang-format off
const AddCases rotary_cases{
    {"rotary", {{{2, 5, 3, 6}}}, CALL(rotary(x[0], {.frequencies = {1, 0.3, 0.01}, .first = 3, .scale = 1.5})),
     "1.5 * turned(x[0], [1, 0.3, 0.01], 3)", 16},
    {"rotary_slice", {{{2, 3, 4, 8}, Values::normal, Layout::strided}},
     CALL(rotary(x[0].slice(2, 1, 2), {.frequencies = {1, 0.5, 0.25, 0}})),
     "turned(x[0][:, :, 1:3], [1, 0.5, 0.25, 0], 0)", 16}};
// clang-format on

TEST(Rotary, SaysWhatIsWrong) {
  const Tensor x = Tensor::zeros({1, 2, 3, 4});
  EXPECT_THAT(error_text([&] { rotary(x, {.frequencies = {1}}); }),
              testing::HasSubstr("rotary: expected 2 frequencies for f32[1,2,3,4] on cpu, got 1"));
  EXPECT_THAT(
      error_text([&] { rotary(x.slice(3, 0, 3), {.frequencies = {1}}); }),
      testing::HasSubstr("rotary: expected a floating x [N, tokens, heads, D] with an even D of at most 256, got "
                         "f32[1,2,3,3] on cpu"));
}

}  // namespace
}  // namespace weft::test
