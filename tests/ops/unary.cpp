// SPDX-License-Identifier: Apache-2.0
#include "core/ops/abs.h"
#include "core/ops/add.h"
#include "core/ops/affine.h"
#include "core/ops/clamp.h"
#include "core/ops/cos.h"
#include "core/ops/div.h"
#include "core/ops/exp.h"
#include "core/ops/gelu.h"
#include "core/ops/leaky_relu.h"
#include "core/ops/log.h"
#include "core/ops/mul.h"
#include "core/ops/neg.h"
#include "core/ops/pow.h"
#include "core/ops/reciprocal.h"
#include "core/ops/relu.h"
#include "core/ops/rsqrt.h"
#include "core/ops/sigmoid.h"
#include "core/ops/sign.h"
#include "core/ops/sin.h"
#include "core/ops/sqrt.h"
#include "core/ops/square.h"
#include "core/ops/sub.h"
#include "core/ops/tanh.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

using Inputs = std::vector<Tensor>;

const AddCases cases{
    {"neg", {{{3, 5}, Values::normal}}, [](const Inputs& x) { return neg(x[0]); }},
    {"abs", {{{3, 5}, Values::apart}}, [](const Inputs& x) { return abs(x[0]); }},
    {"sign", {{{3, 5}, Values::apart}}, [](const Inputs& x) { return sign(x[0]); }},
    {"square", {{{3, 5}, Values::normal}}, [](const Inputs& x) { return square(x[0]); }},
    {"sqrt", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return sqrt(x[0]); }},
    {"rsqrt", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return rsqrt(x[0]); }},
    {"reciprocal", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return reciprocal(x[0]); }},
    {"exp", {{{3, 5}, Values::normal}}, [](const Inputs& x) { return exp(x[0]); }},
    {"log", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return log(x[0]); }},
    {"sin", {{{3, 5}, Values::normal}}, [](const Inputs& x) { return sin(x[0]); }},
    {"cos", {{{3, 5}, Values::normal}}, [](const Inputs& x) { return cos(x[0]); }},
    {"relu", {{{3, 5}, Values::apart}}, [](const Inputs& x) { return relu(x[0]); }},
    {"sigmoid", {{{3, 5}, Values::normal}}, [](const Inputs& x) { return sigmoid(x[0]); }},
    {"tanh", {{{3, 5}, Values::normal}}, [](const Inputs& x) { return tanh(x[0]); }},
    {"gelu", {{{3, 5}, Values::normal}}, [](const Inputs& x) { return gelu(x[0]); }},
    {"leaky_relu", {{{3, 5}, Values::apart}}, [](const Inputs& x) { return leaky_relu(x[0]); }},
    {"relu_transposed", {{{5, 7}, Values::apart, Layout::transposed}}, [](const Inputs& x) { return relu(x[0]); }},
    {"relu_strided", {{{2, 3, 9}, Values::apart, Layout::strided}}, [](const Inputs& x) { return relu(x[0]); }},
    {"relu_stretched", {{{4, 3}, Values::apart, Layout::stretched}}, [](const Inputs& x) { return relu(x[0]); }},
    {"relu_empty", {{{0, 3}}}, [](const Inputs& x) { return relu(x[0]); }},
    {"relu_scalar", {{{}, Values::apart}}, [](const Inputs& x) { return relu(x[0]); }},
    {"relu_long", {{{1031}, Values::apart}}, [](const Inputs& x) { return relu(x[0]); }},
    {"gelu_tanh", {{{4, 4}}}, [](const Inputs& x) { return gelu(x[0], Gelu::tanh); }},
    {"leaky_relu_slope", {{{3, 5}, Values::apart}}, [](const Inputs& x) { return leaky_relu(x[0], 0.3); }},
    {"clamp", {{{3, 5}, Values::apart}}, [](const Inputs& x) { return clamp(x[0], -0.5, 0.5); }},
    {"clamp_whole", {{{3, 50}, Values::apart}}, [](const Inputs& x) { return clamp(x[0], -2, 3); }},
    {"affine", {{{3, 5}}}, [](const Inputs& x) { return affine(x[0], -1.5, 0.25); }},
    {"pow_number", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return pow(x[0], 2.5); }},
    {"pow_square_of_negative", {{{3, 5}, Values::apart}}, [](const Inputs& x) { return pow(x[0], 2); }},
    {"add_number", {{{3, 5}}}, [](const Inputs& x) { return 2 + x[0] + 1.5; }, 1},
    {"sub_number", {{{3, 5}}}, [](const Inputs& x) { return 2 - (x[0] - 1.5); }, 1},
    {"mul_number", {{{3, 5}}}, [](const Inputs& x) { return 2 * x[0] * 1.5; }, 1},
    {"div_number", {{{3, 5}, Values::positive}}, [](const Inputs& x) { return 2 / (x[0] / 1.5); }, 1},
};

}  // namespace
}  // namespace weft::test
