// SPDX-License-Identifier: Apache-2.0
#include "core/ops/unary.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "tests/ops/op_case.h"
#include "tests/support/unary_references.h"

namespace weft::test {
namespace {

Values values_of(kernels::Unary f) {
  const tests::Domain domain = tests::reference_of(f).domain;
  return domain == tests::Domain::positive ? Values::positive
         : domain == tests::Domain::all    ? Values::normal
                                           : Values::apart;
}

/// A case for each op of the table.
const AddCases table{
#define WEFT_ROW(name, ...) {#name, {{{3, 5}, values_of(kernels::Unary::name)}}, BOTH(name(x[0]))},
    WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW
};

// clang-format off
const AddCases unary_cases{
    {"gelu", {{{3, 5}}}, BOTH(gelu(x[0]))},
    {"leaky_relu", {{{3, 5}, Values::apart}}, BOTH(leaky_relu(x[0]))},
    {"relu_transposed", {{{5, 7}, Values::apart, Layout::transposed}}, BOTH(relu(x[0]))},
    {"relu_strided", {{{2, 3, 9}, Values::apart, Layout::strided}}, BOTH(relu(x[0]))},
    {"relu_stretched", {{{4, 3}, Values::apart, Layout::stretched}}, BOTH(relu(x[0]))},
    {"relu_empty", {{{0, 3}}}, BOTH(relu(x[0]))},
    {"relu_scalar", {{{}, Values::apart}}, BOTH(relu(x[0]))},
    {"relu_long", {{{1031}, Values::apart}}, BOTH(relu(x[0]))},
    {"gelu_tanh", {{{4, 4}}}, CALL(gelu(x[0], Gelu::tanh)), "gelu(x[0], approximate='tanh')"},
    {"leaky_relu_slope", {{{3, 5}, Values::apart}}, BOTH(leaky_relu(x[0], 0.3))},
    {"clamp", {{{3, 5}, Values::apart}}, BOTH(clamp(x[0], -0.5, 0.5))},
    {"clamp_whole", {{{3, 50}, Values::apart}}, BOTH(clamp(x[0], -2, 3))},
    {"elu", {{{3, 5}, Values::apart}}, BOTH(elu(x[0], 0.7))},
    {"isnan", {{{3, 9}, Values::apart}}, BOTH(isnan(sqrt(x[0]))), 1, true, Derivative::none},
    {"isfinite", {{{3, 9}, Values::apart}}, BOTH(isfinite(sqrt(x[0]))), 1, true, Derivative::none},
    {"affine", {{{3, 5}}}, BOTH(affine(x[0], -1.5, 0.25))},
    {"pow_number", {{{3, 5}, Values::positive}}, BOTH(pow(x[0], 2.5))},
    {"pow_square_of_negative", {{{3, 5}, Values::apart}}, BOTH(pow(x[0], 2))},
    {"add_number", {{{3, 5}}}, BOTH(2 + x[0] + 1.5), 1},
    {"sub_number", {{{3, 5}}}, BOTH(2 - (x[0] - 1.5)), 1},
    {"mul_number", {{{3, 5}}}, BOTH(2 * x[0] * 1.5), 1},
    {"div_number", {{{3, 5}, Values::positive}}, BOTH(2 / (x[0] / 1.5)), 1}};
// clang-format on

}  // namespace
}  // namespace weft::test
